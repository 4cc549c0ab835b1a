package auth_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

const (
	issuerName = "https://issuer.test"
	audience   = "oneturn"
)

// clock is a time that a test sets.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// signer is a key with its id.
type signer struct {
	kid     string
	alg     jose.SignatureAlgorithm
	private crypto.Signer
}

// The keys are made once: an RSA key takes long.
var (
	rsaKey      = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	foreignRSA  = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	weakRSA     = sync.OnceValue(func() crypto.Signer { return must(rsa.GenerateKey(rand.Reader, 1024)) })
	p256        = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	p384        = sync.OnceValue(func() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	ed25519Key  = sync.OnceValue(func() crypto.Signer { _, key, err := ed25519.GenerateKey(rand.Reader); return must(key, err) })
	rs256       = signerOf("k1", jose.RS256, rsaKey)
	claimsNames = []string{"iss", "aud", "sub", "app_id", "exp"}
)

func signerOf(kid string, alg jose.SignatureAlgorithm, key func() crypto.Signer) func() signer {
	return sync.OnceValue(func() signer { return signer{kid, alg, key()} })
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// public is the key as the issuer publishes it, with changes.
func (s signer) public(changes map[string]any) map[string]any {
	data := must(json.Marshal(jose.JSONWebKey{Key: s.private.Public(), KeyID: s.kid, Algorithm: string(s.alg), Use: "sig"}))
	var key map[string]any
	if err := json.Unmarshal(data, &key); err != nil {
		panic(err)
	}
	return with(key, changes)
}

// with returns a copy of an object with changes; nil removes a name.
func with(object, changes map[string]any) map[string]any {
	object = maps.Clone(object)
	for name, value := range changes {
		object[name] = value
		if value == nil {
			delete(object, name)
		}
	}
	return object
}

// sign returns a token.
func (s signer) sign(claims any, header map[string]any) string {
	options := &jose.SignerOptions{}
	for name, value := range with(map[string]any{"typ": "JWT", "kid": s.kid}, header) {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signing := must(jose.NewSigner(jose.SigningKey{Algorithm: s.alg, Key: s.private}, options))
	return must(jwt.Signed(signing).Claims(claims).Serialize())
}

// raw returns a token of any header and payload, signed with RS256 whatever the header names.
func (s signer) raw(header, payload string) string {
	input := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	hash := crypto.SHA256.New()
	hash.Write([]byte(input))
	signature := must(s.private.Sign(rand.Reader, hash.Sum(nil), crypto.SHA256))
	return input + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// issuer publishes keys.
type issuer struct {
	clock  *clock
	server *httptest.Server
	reads  atomic.Int32
	answer atomic.Pointer[http.HandlerFunc]
	log    lockedBuffer
}

func newIssuer(tb testing.TB, keys ...map[string]any) *issuer {
	tb.Helper()
	is := &issuer{clock: newClock()}
	is.publish(keys...)
	is.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is.reads.Add(1)
		(*is.answer.Load())(w, r)
	}))
	tb.Cleanup(is.server.Close)
	return is
}

func (is *issuer) publish(keys ...map[string]any) {
	is.respond(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
	})
}

func (is *issuer) respond(h http.HandlerFunc) { is.answer.Store(&h) }

func (is *issuer) fail() {
	is.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
}

// authenticator returns the authenticator of a gateway that trusts the issuer.
func (is *issuer) authenticator(tb testing.TB) *auth.JWT {
	tb.Helper()
	a, err := auth.NewJWT(auth.JWTConfig{
		JWKS: is.server.URL + "/jwks.json", Issuer: issuerName, Audience: audience, Now: is.clock.now, Log: slog.New(slog.NewTextHandler(&is.log, nil)),
	})
	require.NoError(tb, err)
	tb.Cleanup(a.Close)
	return a
}

// claims are the ones of a valid token, with changes.
func (is *issuer) claims(changes map[string]any) map[string]any {
	now := is.clock.now()
	return with(map[string]any{
		"iss": issuerName, "aud": audience, "sub": "ada", "app_id": "acme", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}, changes)
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
