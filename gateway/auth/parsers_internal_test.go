package auth

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
)

func FuzzTokenFile(f *testing.F) {
	hash := HashToken("t1")
	for _, text := range []string{
		"- {sha256: " + hash + ", app: acme, user: ada}\n",
		"- sha256: " + hash + "\n  app: [a, b]\n  service: x\n  roles: operator\n  workflows: []\n  chats: c\n  expires: 2027-01-31\n",
		`[{"sha256":"` + hash + `","app":"acme","user":"ada","expires":"2027-01-31T00:00:00Z"}]`,
		"- &a {sha256: *a, <<: *a}", "[]", "--- \n...", "- {sha256: !!binary YQ==, app: !!null x, user: }",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, err := parseTokens("tokens.yaml", data)
		if err != nil {
			finding, ok := diag.Of(err)
			require.True(t, ok)
			require.NotEmpty(t, finding.Fix)
			require.NotContains(t, err.Error(), hash)
			require.Nil(t, tokens)
			return
		}
		seen := map[[sha256.Size]byte]bool{}
		for _, token := range tokens {
			require.False(t, seen[token.hash])
			seen[token.hash] = true
			require.NotZero(t, token.hash)
			require.NotEmpty(t, token.apps)
			require.NotContains(t, token.apps, "")
			require.NotEmpty(t, token.user)
			require.NotContains(t, token.chats, "")
			require.NotContains(t, token.workflows, "")
		}
	})
}

func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","kid":"k","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","kid":"k","n":"AQAB","e":"AQAB","x5c":["MII="]},{"kty":"oct","k":"AA"},null,[]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, _, err := parseKeySet(data)
		require.Equal(t, err == nil, len(keys) > 0)
		for kid, of := range keys {
			require.NotEmpty(t, kid)
			for _, key := range of {
				require.NotNil(t, key.public)
				require.False(t, key.signs("HS256") || key.signs("none"))
			}
		}
	})
}
