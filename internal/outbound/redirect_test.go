package outbound_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestRedirectToAPrivateAddressIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:1/latest/meta-data", http.StatusTemporaryRedirect)
	})
	o := local()
	o.Network.AllowPrivate = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	_, err := post(t, client(t, o), s.URL)
	require.ErrorContains(t, err, "loopback address, which is refused")
}

func TestRedirectsAreFollowedThreeTimes(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		left, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		if left > 0 {
			http.Redirect(w, r, "/"+strconv.Itoa(left-1), http.StatusPermanentRedirect)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	c := client(t, local())
	body, err := post(t, c, s.URL+"/3")
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, body)
	_, err = post(t, c, s.URL+"/4")
	require.ErrorContains(t, err, "3 are followed at most")
	require.False(t, tools.IsRetryable(err))
}

func TestRedirectDoesNotMakeAGetOfAPost(t *testing.T) {
	t.Parallel()
	for _, status := range []int{301, 302, 303} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", status) })
		_, err := post(t, client(t, local()), s.URL)
		require.ErrorContains(t, err, "makes a GET of a POST")
	}
}

func TestRedirectFromTLSToPlainTextIsRefused(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(s.Close)
	o := local()
	o.TLS = trusting(s)
	_, err := post(t, client(t, o), s.URL)
	require.ErrorContains(t, err, "from https to another scheme")
}

func trusting(s *httptest.Server) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func TestAnotherOriginGetsNoSecretAndNoNames(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 2)
	away := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Clone() })
	home := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
	})
	o := local()
	o.Headers = map[string]target.Value{"authorization": {File: secret(t, "CANARY-1\n"), Prefix: "Bearer "}, "X-Plain": {Text: "yes"}}
	_, err := post(t, client(t, o), home.URL+"?key=CANARY-2", "Oneturn-User", "ada", "Idempotency-Key", "k", "Content-Type", "application/json")
	require.NoError(t, err)
	h := <-seen
	require.Equal(t, "Bearer CANARY-1", h.Get("Authorization"))
	require.Equal(t, "yes", h.Get("X-Plain"))
	require.Equal(t, "ada", h.Get("Oneturn-User"))
	h = <-seen
	require.Equal(t, "k", h.Get("Idempotency-Key"), "the tool must not run twice there either")
	require.Equal(t, "application/json", h.Get("Content-Type"))
	for _, name := range []string{"Authorization", "X-Plain", "Oneturn-User", "Referer"} {
		require.Empty(t, h.Get(name), name)
	}
}

func TestRedirectBackHomeBringsNoSecretAlong(t *testing.T) {
	t.Parallel()
	var away *httptest.Server
	seen := make(chan string, 2)
	home := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization") + r.Header.Get("Oneturn-User")
		if r.URL.Path == "/" {
			http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
		}
	})
	away = serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, home.URL+"/delete-all", http.StatusTemporaryRedirect)
	})
	o := local()
	o.Headers = map[string]target.Value{"Authorization": {Text: "secret"}}
	_, err := post(t, client(t, o), home.URL+"/", "Oneturn-User", "ada")
	require.NoError(t, err)
	require.Equal(t, "secretada", <-seen)
	require.Empty(t, <-seen)
}
