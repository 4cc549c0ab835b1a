package auth_test

import (
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

// BenchmarkAuthenticate is what every request pays for its token.
func BenchmarkAuthenticate(b *testing.B) {
	for _, s := range []signer{rs256(), {"es", jose.ES256, p256()}, {"ed", jose.EdDSA, ed25519Key()}} {
		is := newIssuer(b, s.public(nil))
		a := is.authenticator(b)
		r := auth.Request{Token: s.sign(is.claims(nil), nil)}
		b.Run(string(s.alg), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Authenticate(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	var text strings.Builder
	for range 9_999 {
		text.WriteString(entry(auth.NewToken(), "user: ada"))
	}
	f := openTokens(b, text.String()+entry("t1", "user: ada"))
	b.Run("one of 10000 static tokens", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := f.Authenticate(b.Context(), auth.Request{Token: "t1"})
			require.NoError(b, err)
		}
	})
}
