package secrets

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/events"
)

// boxMark is the first byte of a box: no JSON begins with it.
const boxMark = 0x01

// headSize is the mark and the id of the key.
const headSize = 1 + idSize

// Sealed reports whether data is a box that [Keys.Seal] made, and no JSON.
func Sealed(data []byte) bool { return len(data) > headSize && data[0] == boxMark }

// Seal encrypts data for the record of a name: a journal key. The box opens under that name
// only, so that it cannot be moved to a question whose answer is not secret.
func (k *Keys) Seal(name string, data []byte) ([]byte, error) {
	if err := k.Ready(); err != nil {
		return nil, err
	}
	first := k.ring[0]
	box, err := first.aead()
	if err != nil {
		return nil, err
	}
	head := append([]byte{boxMark}, first.id[:]...)
	return box.Seal(head, nil, data, bound(head, name)), nil //nolint:gosec // the cipher makes a random nonce itself
}

// ErrUnknownKey is wrapped by the errors of [Keys.Open] for a box of a key that the worker does not have: another
// worker may have it.
var ErrUnknownKey = errors.New("the key is unknown")

// Open decrypts a box of [Keys.Seal]. Errors have code state_corrupt.
func (k *Keys) Open(name string, box []byte) ([]byte, error) {
	if !Sealed(box) {
		return nil, openError("it is not a sealed box", nil)
	}
	head, sealed := box[:headSize], box[headSize:]
	if k == nil {
		return nil, openError(fmt.Sprintf("it was sealed with key %x, and this worker has none: start it with the --secret-keys of the others", head[1:]), ErrUnknownKey)
	}
	for i := range k.ring {
		if !bytes.Equal(k.ring[i].id[:], head[1:]) {
			continue
		}
		aead, err := k.ring[i].aead()
		if err != nil {
			return nil, err
		}
		data, err := aead.Open(nil, nil, sealed, bound(head, name))
		if err != nil {
			return nil, openError("it was changed, or belongs to another record", nil)
		}
		return data, nil
	}
	return nil, openError(fmt.Sprintf("it was sealed with key %x, which is not in the --secret-keys of this worker: add it there, below the first one", head[1:]), ErrUnknownKey)
}

func openError(why string, cause error) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "open a secret answer", Msg: "the stored answer cannot be opened: " + why, Err: cause}
}

// bound is the associated data of a box: whatever is not encrypted and must not change.
func bound(head []byte, name string) []byte { return append(bytes.Clone(head), name...) }

// aead makes the cipher of a key. Nonces are random: a key is good for 2^32 answers.
func (k *key) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.seal)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("make a cipher: %w", err)
	}
	return aead, nil
}
