package auth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

// FuzzClaims signs any header and payload: what is accepted has the claims that an independent reader finds, and is valid now.
func FuzzClaims(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	is := newIssuer(f, signer{"ed", jose.EdDSA, key}.public(nil))
	a := is.authenticator(f)
	header := `{"alg":"EdDSA","kid":"ed"}`
	for _, payload := range []string{
		string(must(json.Marshal(is.claims(nil)))),
		string(must(json.Marshal(is.claims(map[string]any{"app_id": []string{"a", "b"}, "chat_id": "c", "workflows": []string{}, "roles": "operator", "nbf": 1.5})))),
		`{"sub":"ada","SUB":"root","exp":1e99}`, `{"aud":["oneturn",null]}`, `null`, `[]`,
	} {
		f.Add(header, payload)
		f.Add(`{"alg":"EdDSA","kid":"ed","crit":["b64"],"b64":false,"typ":"JWT","jwk":{}}`, payload)
	}
	now := is.clock.now()
	f.Fuzz(func(t *testing.T, header, payload string) {
		input := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
		token := input + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(input)))
		id, err := a.Authenticate(t.Context(), auth.Request{Token: token})
		if err != nil {
			require.True(t, errors.Is(err, auth.ErrTokenInvalid) || errors.Is(err, auth.ErrTokenExpired), "%v", err)
			return
		}
		var head map[string]any
		require.NoError(t, json.Unmarshal([]byte(header), &head))
		require.Equal(t, "EdDSA", head["alg"])
		require.Equal(t, "ed", head["kid"])
		var claims map[string]any
		require.NoError(t, json.Unmarshal([]byte(payload), &claims))
		require.Equal(t, issuerName, claims["iss"])
		require.Contains(t, listOf(claims["aud"]), audience)
		require.Equal(t, claims["sub"], id.User)
		require.NotEmpty(t, id.User)
		require.Equal(t, listOf(claims["app_id"]), id.Apps)
		require.NotEmpty(t, id.Apps)
		require.Equal(t, listOf(claims["chat_id"]), id.Chats)
		require.Equal(t, listOf(claims["workflows"]), id.Workflows)
		require.False(t, id.AnyApp)
		for _, role := range id.Roles {
			require.Contains(t, listOf(claims["roles"]), string(role))
		}
		require.InDelta(t, claims["exp"], float64(id.Expires.Add(-auth.Leeway).UnixNano())/float64(time.Second), 1e-3)
		require.True(t, now.Before(id.Expires))
		if nbf, ok := claims["nbf"].(float64); ok {
			require.LessOrEqual(t, nbf, float64(now.Add(auth.Leeway).Unix()))
		}
	})
}

// listOf returns a claim that is a string or a list of strings.
func listOf(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		list := []string{}
		for _, item := range claim {
			s, _ := item.(string)
			list = append(list, s)
		}
		return list
	}
	return nil
}
