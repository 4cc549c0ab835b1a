package python

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/redact"
)

// entrusted is a call that was handed a secret.
func entrusted(secret string) *pending {
	p := &pending{secrets: &redact.SecretAnswers{}}
	p.secrets.AddSecret(fmt.Appendf(nil, "%q", secret), nil)
	return p
}

func TestNoSecretIsPrintedOnceAProcessWasHandedMoreThanAreSearchedFor(t *testing.T) {
	t.Parallel()
	secret := func(n int) string { return fmt.Sprintf("swordfish-%04d-of-the-call", n) }
	c := newChild(nil, launch{}, slog.New(slog.DiscardHandler))
	for n := range maxSecretCalls {
		c.watchSecrets(entrusted(secret(n)))
	}
	require.Equal(t, "the key is "+redact.Replacement, c.scrub("the key is "+secret(0), false))
	require.Equal(t, "nothing of that kind", c.scrub("nothing of that kind", false), "as long as all are known")
	c.watchSecrets(entrusted(secret(maxSecretCalls)))
	for n := range maxSecretCalls + 1 {
		for _, cut := range []bool{false, true} {
			require.NotContains(t, c.scrub("the key is "+secret(n), cut), secret(n))
		}
	}
	require.Equal(t, redact.Replacement, c.scrub("anything", false), "it may be what is left of one")

	g := &group{all: map[*child]*slot{}}
	s := &slot{child: c, load: 2}
	g.all[c] = s
	g.release(c, false)
	require.True(t, s.retired, "it is handed no more calls")
}
