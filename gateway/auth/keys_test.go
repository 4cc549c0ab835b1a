package auth_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

func TestAKeyThatIsNotKnownIsLookedUpEvery30Seconds(t *testing.T) {
	t.Parallel()
	s, next := rs256(), signer{"k2", jose.ES256, p256()}
	is := newIssuer(t, s.public(nil))
	a := is.authenticator(t)
	_, err := authenticate(t, a, s.sign(is.claims(nil), nil))
	require.NoError(t, err)
	require.EqualValues(t, 1, is.reads.Load())

	is.publish(s.public(nil), next.public(nil))
	is.clock.advance(29 * time.Second)
	for range 3 {
		_, err = authenticate(t, a, next.sign(is.claims(nil), nil))
		require.ErrorIs(t, err, auth.ErrTokenInvalid)
	}
	require.EqualValues(t, 1, is.reads.Load())

	is.clock.advance(time.Second)
	_, err = authenticate(t, a, next.sign(is.claims(nil), nil))
	require.NoError(t, err)
	require.EqualValues(t, 2, is.reads.Load())
	for range 3 {
		_, err = authenticate(t, a, next.sign(is.claims(nil), map[string]any{"kid": "random"}))
		require.ErrorIs(t, err, auth.ErrTokenInvalid)
	}
	require.EqualValues(t, 2, is.reads.Load())
}

func TestAKeyThatIsWithdrawnIsRefused(t *testing.T) {
	t.Parallel()
	old, next := rs256(), signer{"k2", jose.EdDSA, ed25519Key()}
	is := newIssuer(t, old.public(nil))
	a := is.authenticator(t)
	token := old.sign(is.claims(map[string]any{"exp": is.clock.now().Add(time.Hour * 100).Unix()}), nil)
	_, err := authenticate(t, a, token)
	require.NoError(t, err)

	is.publish(next.public(nil))
	is.clock.advance(31 * time.Second)
	_, err = authenticate(t, a, next.sign(is.claims(nil), nil))
	require.NoError(t, err)
	_, err = authenticate(t, a, token)
	require.ErrorIs(t, err, auth.ErrTokenInvalid, "the read for the new key has removed the old one")

	is.publish(old.public(nil))
	is.clock.advance(11 * time.Minute)
	_, err = authenticate(t, a, next.sign(is.claims(nil), nil))
	require.NoError(t, err, "old keys are in use while they are read again")
	require.Eventually(t, func() bool {
		_, err := a.Authenticate(context.Background(), auth.Request{Token: next.sign(is.claims(nil), nil)})
		return errors.Is(err, auth.ErrTokenInvalid)
	}, 5*time.Second, time.Millisecond, "without a token of an unknown key it takes ten minutes")
}

func TestTwoKeysMayHaveTheSameID(t *testing.T) {
	t.Parallel()
	s, foreign := rs256(), signer{"k1", jose.RS256, foreignRSA()}
	is := newIssuer(t, s.public(nil), foreign.public(nil))
	a := is.authenticator(t)
	for _, s := range []signer{s, foreign} {
		_, err := authenticate(t, a, s.sign(is.claims(nil), nil))
		require.NoError(t, err)
	}
}

// refusals returns a function that authenticates a token of an issuer that is down, and returns the refusal, nil if there is none.
func refusals(t *testing.T, is *issuer, a auth.Authenticator, token string) func() *auth.Error {
	t.Helper()
	return func() *auth.Error {
		_, err := authenticate(t, a, token)
		if err == nil {
			return nil
		}
		var e *auth.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, auth.CodeUnavailable, e.Code)
		require.Equal(t, http.StatusServiceUnavailable, e.Status())
		require.Positive(t, e.RetryAfter)
		require.NotContains(t, e.Msg, is.server.URL)
		return e
	}
}

func TestTokensAreUndecidedWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	s, next := rs256(), signer{"k2", jose.ES256, p256()}
	is := newIssuer(t, s.public(nil))
	a := is.authenticator(t)
	_, err := authenticate(t, a, s.sign(is.claims(nil), nil))
	require.NoError(t, err)
	is.fail()
	is.clock.advance(time.Minute)
	try := refusals(t, is, a, next.sign(is.claims(nil), nil))
	reads := is.reads.Load()
	for _, seconds := range []int{1, 2, 4, 8, 16, 30, 30} {
		pause := time.Duration(seconds) * time.Second
		reads++
		require.Equal(t, pause, try().RetryAfter)
		require.Equal(t, reads, is.reads.Load())
		is.clock.advance(pause - time.Millisecond)
		require.Equal(t, time.Second, try().RetryAfter, "not less than a second")
		require.Equal(t, reads, is.reads.Load(), "no read before the pause of %s is over", pause)
		is.clock.advance(time.Millisecond)
	}
	is.publish(s.public(nil), next.public(nil))
	require.Nil(t, try())
	require.Contains(t, is.log.String(), "keys of tokens cannot be read")
}

// A gateway that has started before its issuer is of use as soon as the issuer is there, however often its keys could not be read.
func TestTokensAreValidWhenAnIssuerStartsAfterTheGateway(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t)
	is.fail()
	a := is.authenticator(t)
	try := refusals(t, is, a, s.sign(is.claims(nil), nil))
	for range 100 {
		reads := is.reads.Load()
		for range 3 {
			require.Equal(t, time.Second, try().RetryAfter)
		}
		require.Equal(t, reads+1, is.reads.Load(), "ten reads a second at most")
		is.clock.advance(100 * time.Millisecond)
	}
	is.publish(s.public(nil))
	require.Nil(t, try())
	require.LessOrEqual(t, strings.Count(is.log.String(), "keys of tokens cannot be read"), 10)
}

func TestAuthenticatorIsReadyFromTheFirstTimeThatItHasReadItsKeys(t *testing.T) {
	t.Parallel()
	is := newIssuer(t)
	is.fail()
	a := is.authenticator(t)
	chain := auth.Chain{openTokens(t, entry("t1", "user: ada")), a}
	require.Error(t, chain.Ready())
	require.Eventually(t, func() bool { return is.log.String() != "" }, 10*time.Second, time.Millisecond)
	require.ErrorContains(t, chain.Ready(), "keys of tokens could not be read")
	reads := is.reads.Load()
	is.publish(rs256().public(nil))
	require.Error(t, chain.Ready())
	require.Equal(t, reads, is.reads.Load(), "the pause is not over")
	is.clock.advance(time.Minute)
	require.Eventually(t, func() bool { return chain.Ready() == nil }, 10*time.Second, time.Millisecond)
	is.fail()
	is.clock.advance(48 * time.Hour)
	require.NoError(t, chain.Ready(), "an outage of the issuer does not take all gateways out of service")
}

func TestKnownKeysRemainInUseForADayWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	a := is.authenticator(t)
	_, err := authenticate(t, a, s.sign(is.claims(nil), nil))
	require.NoError(t, err)
	is.server.Close()
	for range 23 {
		is.clock.advance(time.Hour)
		_, err = authenticate(t, a, s.sign(is.claims(nil), nil))
		require.NoError(t, err)
		_, err = authenticate(t, a, s.sign(is.claims(nil), map[string]any{"kid": "new"}))
		require.ErrorIs(t, err, auth.ErrUnavailable, "a new key cannot be distinguished from a wrong one")
	}
	is.clock.advance(time.Hour)
	_, err = authenticate(t, a, s.sign(is.claims(nil), nil))
	require.ErrorIs(t, err, auth.ErrUnavailable)
}

func TestAReadOfTheKeysDelaysOnlyTokensThatNeedIt(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	a := is.authenticator(t)
	_, err := authenticate(t, a, s.sign(is.claims(nil), nil))
	require.NoError(t, err)

	begun, end := make(chan struct{}), make(chan struct{})
	is.respond(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-end
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{s.public(nil), s.public(map[string]any{"kid": "k2"})}})
	})
	is.clock.advance(time.Minute)
	unknown := make(chan error, 2)
	for range cap(unknown) {
		go func() {
			_, err := a.Authenticate(context.Background(), auth.Request{Token: s.sign(is.claims(nil), map[string]any{"kid": "k2"})})
			unknown <- err
		}()
	}
	<-begun
	_, err = authenticate(t, a, s.sign(is.claims(nil), nil))
	require.NoError(t, err, "a known key is not delayed")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = a.Authenticate(ctx, auth.Request{Token: s.sign(is.claims(nil), map[string]any{"kid": "k3"})})
	require.ErrorIs(t, err, auth.ErrUnavailable, "a request that ends does not wait, and does not end the read")
	require.ErrorIs(t, err, context.Canceled)

	close(end)
	for range cap(unknown) {
		require.NoError(t, <-unknown)
	}
	require.EqualValues(t, 2, is.reads.Load())
}

func TestOneReadOfTheKeysRunsAtATime(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t)
	is.fail()
	a := is.authenticator(t)
	_, err := authenticate(t, a, s.sign(is.claims(nil), nil))
	require.ErrorIs(t, err, auth.ErrUnavailable)

	begun, end := make(chan struct{}, 10), make(chan struct{})
	is.respond(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-end
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{s.public(nil)}})
	})
	results := make(chan error, 5)
	for range cap(results) {
		is.clock.advance(4 * time.Second) // longer than the pause after a failure
		go func() {
			_, err := a.Authenticate(context.Background(), auth.Request{Token: s.sign(is.claims(nil), nil)})
			results <- err
		}()
	}
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.clock.advance(4 * time.Second)
	_, err = a.Authenticate(ctx, auth.Request{Token: s.sign(is.claims(nil), nil)})
	require.ErrorIs(t, err, context.Canceled)
	close(end)
	for range cap(results) {
		require.NoError(t, <-results)
	}
	require.EqualValues(t, 2, is.reads.Load())
}

func TestCloseEndsAReadOfTheKeys(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t)
	begun := make(chan struct{})
	is.respond(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	})
	a := is.authenticator(t)
	refused := make(chan error, 1)
	go func() {
		_, err := a.Authenticate(context.Background(), auth.Request{Token: s.sign(is.claims(nil), nil)})
		refused <- err
	}()
	<-begun
	a.Close()
	require.ErrorIs(t, <-refused, auth.ErrUnavailable)
	is.clock.advance(time.Hour)
	_, err := authenticate(t, a, s.sign(is.claims(nil), nil))
	require.ErrorIs(t, err, auth.ErrUnavailable)
	require.EqualValues(t, 1, is.reads.Load())
}

func TestOnlyKeysForSignaturesAreUsed(t *testing.T) {
	t.Parallel()
	s := rs256()
	private := must(json.Marshal(jose.JSONWebKey{Key: s.private, KeyID: "k1", Algorithm: "RS256", Use: "sig"}))
	var leaked map[string]any
	require.NoError(t, json.Unmarshal(private, &leaked))
	for name, key := range map[string]map[string]any{
		"for encryption":     s.public(map[string]any{"use": "enc"}),
		"to sign":            s.public(map[string]any{"key_ops": []string{"sign"}}),
		"operations a text":  s.public(map[string]any{"key_ops": "verify"}),
		"another algorithm":  s.public(map[string]any{"alg": "RS512"}),
		"for key encryption": s.public(map[string]any{"alg": "RSA-OAEP"}),
		"no id":              s.public(map[string]any{"kid": nil}),
		"no modulus":         s.public(map[string]any{"n": nil}),
		"unknown kind":       s.public(map[string]any{"kty": "AKP"}),
		"private":            leaked,
		"symmetric":          {"kty": "oct", "kid": "k1", "k": "c2VjcmV0", "alg": "HS256"},
		"slow to check":      s.public(map[string]any{"n": base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 1025))}),
		"weak":               signer{"k1", jose.RS256, weakRSA()}.public(nil),
		"another curve":      signer{"k1", jose.ES384, p384()}.public(nil),
	} {
		is := newIssuer(t, key)
		_, err := authenticate(t, is.authenticator(t), s.sign(is.claims(nil), nil))
		want := auth.ErrUnavailable // no key is usable: the address is probably wrong
		if name == "another algorithm" || name == "for key encryption" {
			want = auth.ErrTokenInvalid
		}
		require.ErrorIs(t, err, want, name)
		is.publish(key, s.public(map[string]any{"key_ops": []string{"verify"}, "use": nil, "alg": nil}))
		_, err = authenticate(t, is.authenticator(t), s.sign(is.claims(nil), nil))
		require.NoError(t, err, "%s: other keys of the set are used", name)
	}
}

func TestKeySetsAreBounded(t *testing.T) {
	t.Parallel()
	s := rs256()
	elsewhere := newIssuer(t, s.public(nil))
	key := string(must(json.Marshal(s.public(nil))))
	for name, h := range map[string]http.HandlerFunc{
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"keys":[%s],"x":"%s"}`, key, strings.Repeat("x", 1<<20))
		},
		"too much space": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"keys":[%s]}%s`, key, strings.Repeat(" ", 1<<20))
		},
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"a list":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "["+key+"]") },
		"empty":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[]}`) },
		"another status": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, `{"keys":[%s]}`, key)
		},
		"deep": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":`+strings.Repeat("[", 500_000)) },
		"redirect to another host": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.server.URL, http.StatusFound)
		},
		"redirect to a file": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/keys", http.StatusFound)
		},
		"endless redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) },
	} {
		is := newIssuer(t)
		is.respond(h)
		_, err := authenticate(t, is.authenticator(t), s.sign(is.claims(nil), nil))
		require.ErrorIs(t, err, auth.ErrUnavailable, name)
		require.LessOrEqual(t, is.reads.Load(), int32(4), "%s: three redirects", name)
	}
	require.Zero(t, elsewhere.reads.Load())

	is := newIssuer(t)
	is.respond(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/keys" {
			http.Redirect(w, r, "/keys", http.StatusMovedPermanently)
			return
		}
		fmt.Fprintf(w, `{"keys":[%s]}`, key)
	})
	_, err := authenticate(t, is.authenticator(t), s.sign(is.claims(nil), nil))
	require.NoError(t, err, "a redirect within the host is followed")
}

func TestKeysAreReadByHTTPSOnlyIfTheServerIsTrusted(t *testing.T) {
	t.Parallel()
	s := rs256()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{s.public(nil)}})
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	is := newIssuer(t)
	a, err := auth.NewJWT(auth.JWTConfig{JWKS: server.URL, Issuer: issuerName, Audience: audience, Now: is.clock.now})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	_, err = authenticate(t, a, s.sign(is.claims(nil), nil))
	require.ErrorIs(t, err, auth.ErrUnavailable, "its certificate is signed by an authority that is not known")
}
