package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// tokenPrefix lets scanners of repositories and logs recognise a token that was leaked.
const tokenPrefix = "oneturn_"

// NewToken returns a new static token of at least 128 random bits. Its hash belongs in the file of [StaticTokens], the
// token only to its user.
func NewToken() string { return tokenPrefix + rand.Text() }

// HashToken returns what the file of [StaticTokens] has in place of a token: the hex of its SHA-256. That is safe for a
// token of [NewToken], which cannot be guessed, and not for a password.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
