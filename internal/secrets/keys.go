package secrets

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
)

// This file has the key ring: its text form, the key that seals, and the former keys that still open. seal.go uses it,
// key_file.go reads and writes its file.

// Sizes and bounds of keys.
const (
	keySize = 32  // bytes
	idSize  = 4   // bytes
	maxKeys = 100 // in one ring
)

// Keys is a ring of secret keys: the first one seals, all open. A nil ring has none, and its methods
// fail. It is safe for concurrent use.
type Keys struct{ ring []key }

// key is what is derived from one line of a key file.
type key struct {
	id   [idSize]byte
	seal []byte // of AES-256-GCM
}

// NewKey returns the line of a new key for a key file, without the end of the line.
func NewKey() string {
	var raw [keySize]byte
	_, _ = rand.Read(raw[:]) // never fails
	return base64.StdEncoding.EncodeToString(raw[:])
}

// Parse reads a ring from text: one key of 32 bytes a line, in base64. Empty lines and those
// that begin with # do not count. Errors name the line and nothing of what it holds.
func Parse(text []byte) (*Keys, error) {
	k := &Keys{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		raw := make([]byte, base64.StdEncoding.DecodedLen(len(line)))
		n, err := base64.StdEncoding.Decode(raw, line)
		if err != nil || n != keySize {
			return nil, fmt.Errorf("line %d is not a key of %d bytes in base64: `turnctl secret-key` makes one", number, keySize)
		}
		one, err := newKey(raw[:n])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if slices.ContainsFunc(k.ring, func(other key) bool { return other.id == one.id }) {
			return nil, fmt.Errorf("line %d: duplicate key", number)
		}
		if len(k.ring) == maxKeys {
			return nil, fmt.Errorf("more than %d keys: remove the oldest, what they sealed is long erased", maxKeys)
		}
		k.ring = append(k.ring, one)
	}
	if len(k.ring) == 0 {
		return nil, errors.New("there is no key: `turnctl secret-key` makes one")
	}
	return k, nil
}

// newKey derives what is needed from the bytes of a key, so that no two uses share one.
func newKey(raw []byte) (key, error) {
	derive := func(use string, size int) ([]byte, error) {
		return hkdf.Key(sha256.New, raw, nil, "oneturn secrets "+use, size)
	}
	var k key
	id, err1 := derive("id", idSize)
	seal, err2 := derive("seal", keySize)
	if err := errors.Join(err1, err2); err != nil {
		return key{}, fmt.Errorf("derive a key: %w", err)
	}
	k.seal = seal
	copy(k.id[:], id)
	return k, nil
}

// Ready returns the error of a question whose answer could not be sealed, nil if it can be.
func (k *Keys) Ready() error {
	if k != nil && len(k.ring) > 0 {
		return nil
	}
	return &events.Error{
		Code: events.CodeToolError, Op: "ask",
		Msg: "the question is secret, and this worker has no key to seal the answer with: make one with `turnctl secret-key` in a file " +
			"that only the worker can read, and name it with --secret-keys FILE (in Go: Config.SecretKeys) for every worker of the pool",
	}
}

// String is the number of keys and nothing else, so that a printed ring reveals nothing.
func (k *Keys) String() string {
	if k == nil {
		return "no secret keys"
	}
	return fmt.Sprintf("%d secret keys", len(k.ring))
}

// Format implements [fmt.Formatter] with the text of [Keys.String] for every verb.
func (k *Keys) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(k.String())) }
