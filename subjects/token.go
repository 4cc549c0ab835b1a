package subjects

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// An id of any bytes becomes one token: bytes outside of a small alphabet are escaped, long ids are replaced by a
// hash. Turn tokens join run id and turn key so that no two pairs give the same token.

// MaxToken is the longest token in characters; a longer one is replaced by a hash.
const MaxToken = 64

// Absent is the token of an id that is not there.
const Absent = "-"

const (
	hashMark = "=="
	upperHex = "0123456789ABCDEF"
)

// Token returns the subject token of an id: every byte outside [A-Za-z0-9_-] is written
// =XX, and a result longer than [MaxToken] becomes "==" and 22 characters of
// base64url(sha256(id)). The empty id is [Absent]; the id "-" is written =2D. Different ids
// have different tokens (up to a collision of sha256).
func Token(id string) string {
	switch id {
	case "":
		return Absent
	case Absent:
		return "=2D"
	}
	size := len(id)
	for i := range len(id) {
		if !plain(id[i]) {
			size += 2
		}
	}
	if size == len(id) && size <= MaxToken {
		return id
	}
	if size > MaxToken {
		sum := sha256.Sum256([]byte(id))
		return hashMark + base64.RawURLEncoding.EncodeToString(sum[:])[:22]
	}
	var b strings.Builder
	b.Grow(size)
	for i := range len(id) {
		c := id[i]
		if plain(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('=')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

var errToken = errors.New("subjects: not a token: want [A-Za-z0-9_-] and =XX escapes, as Token makes them")

// Untoken returns the id of a token. A hashed token cannot be turned back: then it returns
// the token itself and hashed is true.
func Untoken(token string) (id string, hashed bool, err error) {
	switch {
	case token == Absent:
		return "", false, nil
	case isHash(token):
		return token, true, nil
	case token == "" || len(token) > MaxToken:
		return "", false, errToken
	}
	b := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if plain(c) {
			b = append(b, c)
			continue
		}
		if c != '=' || i+2 >= len(token) {
			return "", false, errToken
		}
		hi, lo := strings.IndexByte(upperHex, token[i+1]), strings.IndexByte(upperHex, token[i+2])
		if hi < 0 || lo < 0 {
			return "", false, errToken
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	if Token(string(b)) != token {
		return "", false, errToken
	}
	return string(b), false, nil
}

// isToken reports whether some id has the token.
func isToken(token string) bool {
	if token == "" || len(token) > MaxToken {
		return false
	}
	if !strings.Contains(token, "=") { // as nearly all; to decode costs an allocation
		for i := range len(token) {
			if !plain(token[i]) {
				return false
			}
		}
		return true
	}
	_, _, err := Untoken(token)
	return err == nil
}

// isHash reports whether a token is the hash of an id.
func isHash(token string) bool {
	digits, ok := strings.CutPrefix(token, hashMark)
	if !ok || len(digits) != 22 {
		return false
	}
	for i := range len(digits) {
		if !plain(digits[i]) {
			return false
		}
	}
	return true
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// TurnToken returns the token of a turn: run id and turn key, joined length-prefixed so that
// no two pairs share one. It reads `0-<turn key>` when there is no run id.
func TurnToken(run, turn string) string {
	return Token(strconv.Itoa(len(run)) + "-" + run + turn)
}

// MessageToken returns the token that stands in the place of a turn in the records of a message. The token of a
// turn begins with a digit, this one with "message".
func MessageToken(run, id string) string {
	return Token(messageMark + strconv.Itoa(len(run)) + "-" + run + id)
}

// messageMark begins the token of a message, unless that is a hash.
const messageMark = "message-"

// ReusedTurnToken is the token of a turn whose key was used before with other data, for
// workflows that set `on_key_reuse: run`: the fingerprint makes it a separate turn.
func ReusedTurnToken(run, turn, fingerprint string) string {
	return Token("f" + fingerprint + "-" + strconv.Itoa(len(run)) + "-" + run + turn)
}
