package subjects

import (
	"crypto/rand"
	"strings"
)

// NewAnswerReply returns a subject for the result of one answer of a tenant, to be named in [HeaderReply].
// It has the product's prefix, so that it can be exported to the account of the tenant: a subject in
// a header, unlike a reply subject, means the same in every account. It cannot be guessed.
func (s Space) NewAnswerReply(app string) string {
	return s.prefix + ".verdict." + Token(app) + "." + rand.Text()
}

// AnswerReplies matches the results of answers of a tenant, given by its id.
func (s Space) AnswerReplies(app string) string { return s.prefix + ".verdict." + Token(app) + ".*" }

// AllAnswerReplies matches the results of all answers.
func (s Space) AllAnswerReplies() string { return s.prefix + ".verdict.*.*" }

// IsAnswerReply reports whether a subject is one for results of answers of a tenant, given by its
// token.
func (s Space) IsAnswerReply(subject, app string) bool {
	random, ok := strings.CutPrefix(subject, s.prefix+".verdict."+app+".")
	if _, _, err := Untoken(random); !ok || err != nil {
		return false
	}
	return true
}
