package auth_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

func authenticate(t *testing.T, a auth.Authenticator, token string) (*auth.Identity, error) {
	t.Helper()
	id, err := a.Authenticate(t.Context(), auth.Request{Token: token})
	if err != nil {
		var e *auth.Error
		require.ErrorAs(t, err, &e)
		require.NotEmpty(t, e.Msg)
		require.Nil(t, id)
	}
	return id, err
}

func TestTokensOfEveryAllowedAlgorithmAreValid(t *testing.T) {
	t.Parallel()
	signers := []signer{
		rs256(),
		{"ps", jose.PS256, rsaKey()},
		{"es", jose.ES256, p256()},
		{"ed", jose.EdDSA, ed25519Key()},
	}
	var keys []map[string]any
	for _, s := range signers {
		keys = append(keys, s.public(nil))
	}
	is := newIssuer(t, keys...)
	a := is.authenticator(t)
	for _, s := range signers {
		id, err := authenticate(t, a, s.sign(is.claims(nil), nil))
		require.NoError(t, err, s.alg)
		require.Equal(t, &auth.Identity{Apps: []string{"acme"}, User: "ada", Expires: time.Unix(is.clock.now().Add(time.Hour+auth.Leeway).Unix(), 0)}, id)
	}
	require.EqualValues(t, 1, is.reads.Load(), "the keys are read once")
}

func TestTokensThatAreNotSignedByTheIssuerAreInvalid(t *testing.T) {
	t.Parallel()
	s := rs256()
	es := signer{"es", jose.ES256, p256()}
	free := signer{"free", "", rsaKey()} // published without an algorithm
	is := newIssuer(t, s.public(nil), es.public(nil), free.public(nil))
	a := is.authenticator(t)
	payload := string(must(json.Marshal(is.claims(nil))))
	good := s.sign(is.claims(nil), nil)
	parts := strings.Split(good, ".")
	b64 := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	hmacWith := func(key []byte) string {
		input := b64(`{"alg":"HS256","kid":"k1"}`) + "." + b64(payload)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(input))
		return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	der := must(x509.MarshalPKIXPublicKey(s.private.Public()))
	foreign := signer{"k1", jose.RS256, foreignRSA()}
	foreignKey := jose.JSONWebKey{Key: foreign.private.Public(), KeyID: "k1", Algorithm: "RS256"}

	for name, token := range map[string]string{
		"text":                          "not.a.token",
		"opaque":                        "opaque",
		"empty parts":                   "..",
		"none":                          b64(`{"alg":"none","kid":"k1"}`) + "." + b64(payload) + ".",
		"None":                          b64(`{"alg":"None","kid":"k1"}`) + "." + b64(payload) + ".",
		"none with a signature":         s.raw(`{"alg":"none","kid":"k1"}`, payload),
		"no algorithm":                  s.raw(`{"kid":"k1"}`, payload),
		"HS256 with the key as PEM":     hmacWith(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"HS256 with the key as DER":     hmacWith(der),
		"HS256 with the key as JWK":     hmacWith(must(json.Marshal(s.public(nil)))),
		"HS256 with an empty key":       hmacWith(nil),
		"RS512":                         signer{"free", jose.RS512, rsaKey()}.sign(is.claims(nil), nil),
		"RS384":                         signer{"free", jose.RS384, rsaKey()}.sign(is.claims(nil), nil),
		"ES384":                         signer{"es", jose.ES384, p384()}.sign(is.claims(nil), nil),
		"PS256 with a key for RS256":    signer{"k1", jose.PS256, rsaKey()}.sign(is.claims(nil), nil),
		"another kind of key":           signer{"k1", jose.ES256, p256()}.sign(is.claims(nil), nil),
		"RS256 with the id of an EC":    signer{"es", jose.RS256, rsaKey()}.sign(is.claims(nil), nil),
		"EdDSA with the id of an RSA":   signer{"free", jose.EdDSA, ed25519Key()}.sign(is.claims(nil), nil),
		"a key that is not published":   foreign.sign(is.claims(nil), nil),
		"a key in the token":            foreign.sign(is.claims(nil), map[string]any{"jwk": foreignKey}),
		"the address of a key set":      foreign.sign(is.claims(nil), map[string]any{"jku": is.server.URL}),
		"no kid":                        s.sign(is.claims(nil), map[string]any{"kid": nil}),
		"empty kid":                     s.raw(`{"alg":"RS256","kid":""}`, payload),
		"kid that is a number":          s.raw(`{"alg":"RS256","kid":1}`, payload),
		"unknown kid":                   s.sign(is.claims(nil), map[string]any{"kid": "other"}),
		"a token to log out":            s.sign(is.claims(nil), map[string]any{"typ": "logout+jwt"}),
		"a type that is a list":         s.raw(`{"alg":"RS256","kid":"k1","typ":["JWT"]}`, payload),
		"expired, of another key":       foreign.sign(is.claims(map[string]any{"exp": 1}), nil),
		"not UTF-8":                     s.raw(`{"alg":"RS256","kid":"k1"}`, strings.Replace(payload, "ada", "a\xff", 1)),
		"half a surrogate":              s.raw(`{"alg":"RS256","kid":"k1"}`, strings.Replace(payload, "ada", `\ud800`, 1)),
		"critical header":               s.raw(`{"alg":"RS256","kid":"k1","crit":["exp"],"exp":1}`, payload),
		"empty critical header":         s.raw(`{"alg":"RS256","kid":"k1","crit":[]}`, payload),
		"payload that is not encoded":   s.raw(`{"alg":"RS256","kid":"k1","crit":["b64"],"b64":false}`, payload),
		"b64 that is not critical":      s.raw(`{"alg":"RS256","kid":"k1","b64":false}`, payload),
		"changed payload":               parts[0] + "." + b64(strings.Replace(payload, "ada", "bob", 1)) + "." + parts[2],
		"changed header":                b64(`{"alg":"RS256","kid":"free"}`) + "." + parts[1] + "." + parts[2],
		"cut signature":                 good[:len(good)-8],
		"no signature":                  parts[0] + "." + parts[1] + ".",
		"two parts":                     parts[0] + "." + parts[1],
		"a fourth part":                 good + ".x",
		"padding":                       good + "=",
		"line break":                    parts[0] + "\n." + parts[1] + "." + parts[2],
		"space":                         " " + good,
		"JSON serialization":            `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"an encrypted token":            "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA",
		"larger than any":               strings.Repeat("a", auth.MaxToken+1),
		"large and signed":              s.sign(is.claims(map[string]any{"x": strings.Repeat("x", auth.MaxToken)}), nil),
		"payload that is not an object": s.raw(`{"alg":"RS256","kid":"k1"}`, `[]`),
		"payload null":                  s.raw(`{"alg":"RS256","kid":"k1"}`, `null`),
		"payload that is not JSON":      s.raw(`{"alg":"RS256","kid":"k1"}`, `{"sub":"ada",}`),
		"a claim twice":                 s.raw(`{"alg":"RS256","kid":"k1"}`, strings.Replace(payload, "{", `{"sub":"root",`, 1)),
	} {
		_, err := authenticate(t, a, token)
		require.ErrorIs(t, err, auth.ErrTokenInvalid, name)
	}
	_, err := authenticate(t, a, good)
	require.NoError(t, err, "the token that the others are made from")
	_, err = authenticate(t, a, s.raw(`{"alg":"RS256","kid":"k1"}`, payload))
	require.NoError(t, err, "the header that the others are made from")
	for _, typ := range []any{nil, "jwt", "JWT", "at+jwt", "application/at+jwt"} {
		_, err = authenticate(t, a, s.sign(is.claims(nil), map[string]any{"typ": typ}))
		require.NoError(t, err, "type %v", typ)
	}
	_, err = authenticate(t, a, free.with(jose.RS256).sign(is.claims(nil), nil))
	require.NoError(t, err, "a key without an algorithm is for all of its kind")
	_, err = authenticate(t, a, "")
	require.ErrorIs(t, err, auth.ErrTokenMissing)
	require.EqualValues(t, 1, is.reads.Load(), "neither an unknown kid nor an address in a token causes reads")
	require.NotContains(t, is.log.String(), parts[2])
}

func (s signer) with(alg jose.SignatureAlgorithm) signer { return signer{s.kid, alg, s.private} }

func TestClaimsDecideWhetherATokenIsValid(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	a := is.authenticator(t)
	now := is.clock.now().Unix()
	for _, c := range []struct {
		claim string
		value any
		want  error
	}{
		{"iss", "https://issuer.test/", auth.ErrTokenInvalid},
		{"iss", "https://evil.test", auth.ErrTokenInvalid},
		{"iss", []string{issuerName}, auth.ErrTokenInvalid},
		{"aud", "other", auth.ErrTokenInvalid},
		{"aud", []string{"other", "oneturn2"}, auth.ErrTokenInvalid},
		{"aud", []string{}, auth.ErrTokenInvalid},
		{"aud", []any{"oneturn", 1}, auth.ErrTokenInvalid},
		{"aud", []string{"other", "oneturn"}, nil},
		{"exp", now - 3600, auth.ErrTokenExpired},
		{"exp", now - 5, auth.ErrTokenExpired},
		{"exp", now - 4, nil},
		{"exp", float64(now) - 4.5, nil},
		{"exp", float64(now) - 5.5, auth.ErrTokenExpired},
		{"exp", 253402300799, nil},
		{"exp", 253402300800, auth.ErrTokenInvalid},
		{"exp", "2099-01-01", auth.ErrTokenInvalid},
		{"exp", "4070908800", auth.ErrTokenInvalid},
		{"exp", json.RawMessage("1e300"), auth.ErrTokenInvalid},
		{"exp", json.RawMessage("1e999"), auth.ErrTokenInvalid},
		{"exp", 0, auth.ErrTokenInvalid},
		{"exp", -1, auth.ErrTokenInvalid},
		{"exp", json.RawMessage("null"), auth.ErrTokenInvalid},
		{"exp", true, auth.ErrTokenInvalid},
		{"exp", []int64{now + 60}, auth.ErrTokenInvalid},
		{"nbf", now + 3600, auth.ErrTokenInvalid},
		{"nbf", now + 6, auth.ErrTokenInvalid},
		{"nbf", now + 5, nil},
		{"nbf", now - 3600, nil},
		{"nbf", "tomorrow", auth.ErrTokenInvalid},
		{"nbf", json.RawMessage("null"), auth.ErrTokenInvalid},
		{"sub", "", auth.ErrTokenInvalid},
		{"sub", 7, auth.ErrTokenInvalid},
		{"sub", []string{"ada"}, auth.ErrTokenInvalid},
		{"sub", "a\nb", auth.ErrTokenInvalid},
		{"sub", strings.Repeat("x", 513), auth.ErrTokenInvalid},
		{"sub", strings.Repeat("x", 512), nil},
		{"sub", "auth0|ünïcode", nil},
		{"app_id", "", auth.ErrTokenInvalid},
		{"app_id", []string{}, auth.ErrTokenInvalid},
		{"app_id", []string{"acme", ""}, auth.ErrTokenInvalid},
		{"app_id", map[string]any{"acme": true}, auth.ErrTokenInvalid},
		{"app_id", []string{"acme", "other"}, nil},
		{"chat_id", json.RawMessage("null"), auth.ErrTokenInvalid},
		{"chat_id", 5, auth.ErrTokenInvalid},
		{"workflows", json.RawMessage("null"), auth.ErrTokenInvalid},
		{"workflows", []any{[]string{"Gate"}}, auth.ErrTokenInvalid},
		{"workflows", []string{}, nil},
		{"roles", json.RawMessage("null"), auth.ErrTokenInvalid},
		{"roles", []string{"user", "admin"}, nil},
	} {
		_, err := authenticate(t, a, s.sign(is.claims(map[string]any{c.claim: c.value}), nil))
		if c.want == nil {
			require.NoError(t, err, "%s %v", c.claim, c.value)
		} else {
			require.ErrorIs(t, err, c.want, "%s %v", c.claim, c.value)
		}
	}
	for _, name := range claimsNames {
		_, err := authenticate(t, a, s.sign(is.claims(map[string]any{name: nil}), nil))
		require.ErrorIs(t, err, auth.ErrTokenInvalid, "without %s", name)
		_, err = authenticate(t, a, s.sign(is.claims(map[string]any{name: nil, strings.ToUpper(name): is.claims(nil)[name]}), nil))
		require.ErrorIs(t, err, auth.ErrTokenInvalid, "%s in another case", name)
	}
}

func TestClaimsRestrictTheIdentity(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	id, err := authenticate(t, is.authenticator(t), s.sign(is.claims(map[string]any{
		"app_id": []string{"acme", "globex"}, "chat_id": "c1", "workflows": []string{"Gate", "Plan"},
		"roles": []string{"admin", "service", "operator", "Operator"},
	}), nil))
	require.NoError(t, err)
	require.Equal(t, []string{"acme", "globex"}, id.Apps)
	require.Equal(t, []string{"c1"}, id.Chats)
	require.Equal(t, []string{"Gate", "Plan"}, id.Workflows)
	require.Equal(t, []auth.Role{auth.RoleService, auth.RoleOperator}, id.Roles)
	require.Nil(t, id.Revoked())

	id, err = authenticate(t, is.authenticator(t), s.sign(is.claims(map[string]any{"workflows": []string{}}), nil))
	require.NoError(t, err)
	require.NotNil(t, id.Workflows, "an empty list allows none")
	require.ErrorIs(t, id.MayUse("acme", "ada", "Gate", "c1"), auth.ErrForbidden)
}

func TestTheClaimWithTheTenantsHasAnyName(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	const name = "https://app.example/tenant"
	a, err := auth.NewJWT(auth.JWTConfig{JWKS: is.server.URL, Issuer: issuerName, Audience: audience, AppClaim: name, Now: is.clock.now})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	id, err := authenticate(t, a, s.sign(is.claims(map[string]any{name: "globex"}), nil))
	require.NoError(t, err)
	require.Equal(t, []string{"globex"}, id.Apps, "app_id has no meaning then")
	_, err = authenticate(t, a, s.sign(is.claims(nil), nil))
	require.ErrorIs(t, err, auth.ErrTokenInvalid)
	require.ErrorContains(t, err, "--tenant-claim")
}

func TestConfigurationOfTokensIsChecked(t *testing.T) {
	t.Parallel()
	good := auth.JWTConfig{JWKS: "https://issuer.test/jwks", Issuer: issuerName, Audience: audience}
	for _, change := range []func(*auth.JWTConfig){
		func(c *auth.JWTConfig) { c.JWKS = "" },
		func(c *auth.JWTConfig) { c.JWKS = "issuer.test/jwks" },
		func(c *auth.JWTConfig) { c.JWKS = "ftp://issuer.test/jwks" },
		func(c *auth.JWTConfig) { c.JWKS = "file:///etc/keys" },
		func(c *auth.JWTConfig) { c.JWKS = "https://user:password@issuer.test/jwks" },
		func(c *auth.JWTConfig) { c.JWKS = "http://issuer.test/jwks" },
		func(c *auth.JWTConfig) { c.JWKS = "http://127.0.0.1.evil.test/jwks" },
		func(c *auth.JWTConfig) { c.Issuer = "" },
		func(c *auth.JWTConfig) { c.Audience = "" },
	} {
		cfg := good
		change(&cfg)
		_, err := auth.NewJWT(cfg)
		require.Error(t, err, "%+v", cfg)
		require.NotContains(t, err.Error(), "password")
	}
	for _, address := range []string{good.JWKS, "http://127.0.0.1:8099/jwks.json", "http://localhost/jwks", "http://[::1]:80/jwks"} {
		good.JWKS = address
		a, err := auth.NewJWT(good)
		require.NoError(t, err, address)
		a.Close()
	}
	good.JWKS, good.AllowHTTP = "http://issuer.test/jwks", true
	a, err := auth.NewJWT(good)
	require.NoError(t, err)
	a.Close()
}

func TestTokensAreCheckedByManyRequestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	a := is.authenticator(t)
	token := s.sign(is.claims(nil), nil)
	errs := make(chan error, 50)
	for range cap(errs) {
		go func() {
			_, err := a.Authenticate(context.Background(), auth.Request{Token: token})
			errs <- err
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.EqualValues(t, 1, is.reads.Load(), "they share one read of the keys")
}

func TestRefusedTokenHasAReasonForTheOperator(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	a := is.authenticator(t)
	claims := func(name string, value any) string { return s.sign(is.claims(map[string]any{name: value}), nil) }
	for token, want := range map[string]auth.Reason{
		"":       auth.ReasonMissing,
		"opaque": auth.ReasonMalformed,
		s.sign(is.claims(nil), map[string]any{"kid": "other"}):           auth.ReasonKey,
		signer{"k1", jose.RS256, foreignRSA()}.sign(is.claims(nil), nil): auth.ReasonSignature,
		claims("iss", "https://other.test"):                              auth.ReasonIssuer,
		claims("iss", nil):                                               auth.ReasonIssuer,
		claims("aud", "other"):                                           auth.ReasonAudience,
		claims("aud", nil):                                               auth.ReasonAudience,
		claims("app_id", nil):                                            auth.ReasonTenant,
		claims("app_id", 7):                                              auth.ReasonTenant,
		claims("sub", nil):                                               auth.ReasonClaims,
		claims("exp", nil):                                               auth.ReasonClaims,
		claims("exp", 1):                                                 auth.ReasonExpired,
		claims("nbf", is.clock.now().Add(time.Hour).Unix()):              auth.ReasonNotYet,
	} {
		_, err := authenticate(t, a, token)
		var refused *auth.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, want, refused.Reason, refused.Msg)
		require.Contains(t, auth.Reasons(), want)
	}
	_, err := authenticate(t, openTokens(t, entry("t1", "user: ada")), "other")
	var refused *auth.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, auth.ReasonUnknown, refused.Reason)
}
