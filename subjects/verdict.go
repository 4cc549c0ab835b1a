package subjects

import (
	"crypto/rand"
	"strings"
)

// NewVerdict is a subject for the verdict on one answer of a tenant, to be named in [HeaderReply]. It
// is the product's own, so that it can be exported to the account of the tenant: a subject in a
// header, unlike a reply subject, means the same in every account. It cannot be guessed.
func (s Space) NewVerdict(app string) string {
	return s.prefix + ".verdict." + Token(app) + "." + rand.Text()
}

// VerdictsOf matches the verdicts on answers of a tenant, given by its id.
func (s Space) VerdictsOf(app string) string { return s.prefix + ".verdict." + Token(app) + ".*" }

// VerdictsOfAll matches the verdicts on all answers.
func (s Space) VerdictsOfAll() string { return s.prefix + ".verdict.*.*" }

// IsVerdict reports whether a subject is one for verdicts on answers of a tenant, given by its
// token.
func (s Space) IsVerdict(subject, app string) bool {
	random, ok := strings.CutPrefix(subject, s.prefix+".verdict."+app+".")
	if _, _, err := Untoken(random); !ok || err != nil {
		return false
	}
	return true
}
