package auth_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

func TestOnlyPagesOfAllowedOriginsUseTheGateway(t *testing.T) {
	t.Parallel()
	list, err := auth.NewOrigins([]string{"https://App.example", "http://app.test:3000/", "https://eight.example:8443", "https://[2001:db8::1]:444", "http://plain.example:80"})
	require.NoError(t, err)
	none, err := auth.NewOrigins(nil)
	require.NoError(t, err)
	for _, c := range []struct {
		host, origin string
		listed, own  bool // allowed with the list, without one
	}{
		{"gw.example", "https://app.example", true, false},
		{"gw.example", "https://app.example:443", true, false},
		{"gw.example", "HTTPS://APP.EXAMPLE", true, false},
		{"gw.example", "http://app.example", false, false},
		{"gw.example", "https://app.example:444", false, false},
		{"gw.example", "https://app.example.evil.example", false, false},
		{"gw.example", "https://evil.app.example", false, false},
		{"gw.example", "https://app.example@evil.example", false, false},
		{"gw.example", "https://app.example/", false, false},
		{"gw.example", "https://app.example#", false, false},
		{"gw.example", "https://app.example?", false, false},
		{"gw.example", "https://app.example.", false, false},
		{"gw.example", "http://app.test:3000", true, false},
		{"gw.example", "http://plain.example", true, false},
		{"gw.example", "https://[2001:db8::1]:444", true, false},
		{"gw.example", "null", false, false},
		{"gw.example", "*", false, false},
		{"gw.example", "file://", false, false},
		{"gw.example", "app.example", false, false},
		{"gw.example", "//app.example", false, false},
		{"gw.example", "https://", false, false},
		{"gw.example", "https://:443", false, false},
		{"gw.example", "https://app.example https://gw.example", false, false},
		{"gw.example", "https://gw.example", true, true},
		{"gw.example", "http://gw.example", true, true},
		{"gw.example:443", "https://gw.example", true, true},
		{"gw.example:443", "http://gw.example", false, false},
		{"gw.example:8090", "http://gw.example:8090", true, true},
		{"gw.example:8090", "http://gw.example", false, false},
		{"gw.example:8090", "http://gw.example:8091", false, false},
		{"GW.example", "https://gw.example", true, true},
		{"127.0.0.1:8090", "http://127.0.0.1:8090", true, true},
		{"127.0.0.1:8090", "http://localhost:8090", false, false},
		{"[::1]:8090", "http://[::1]:8090", true, true},
		{"", "https://gw.example", false, false},
		{"", "http://", false, false},
		{"evil.example/@gw.example", "https://evil.example", false, false},
		{"gw.example", "https://app.example\u212a", false, false},
		{"kite.example", "https://\u212aite.example", false, false},
		{"gw.example", "chrome-extension://gw.example", false, false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ws", nil)
		r.Host = c.host
		r.Header.Set("Origin", c.origin)
		require.Equal(t, c.listed, list.Check(r) == nil, "%+v with a list", c)
		for _, origins := range []*auth.Origins{none, nil} {
			err := origins.Check(r)
			require.Equal(t, c.own, err == nil, "%+v without a list", c)
			if err != nil {
				require.ErrorIs(t, err, auth.ErrForbidden)
			}
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ws", nil)
	require.NoError(t, list.Check(r), "without an origin it is not a page")
	r.Header["Origin"] = []string{""}
	require.Error(t, list.Check(r))
	r.Header["Origin"] = []string{"https://app.example", "https://app.example"}
	require.Error(t, list.Check(r))
}

func TestPagesWithoutTLSAreNotThePagesOfAGatewayWithTLS(t *testing.T) {
	t.Parallel()
	listed, err := auth.NewOrigins([]string{"http://app.example"})
	require.NoError(t, err)
	for _, secure := range []func(*http.Request){
		func(r *http.Request) { r.TLS = &tls.ConnectionState{} },
		func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") },
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ws", nil)
		r.Host = "gw.example"
		secure(r)
		for origin, may := range map[string]bool{"https://gw.example": true, "http://gw.example": false, "http://app.example": true} {
			r.Header.Set("Origin", origin)
			require.Equal(t, may, listed.Check(r) == nil, origin)
		}
	}
}

func TestTheListOfOriginsIsChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"*":                      "list each origin",
		"https://*.example":      "list each origin",
		"null":                   "is not an origin",
		"app.example":            "is not an origin",
		"https://app.example/x":  "write scheme://host",
		"https://u@app.example":  "is not an origin",
		"ftp://app.example":      "is not an origin",
		"":                       "is not an origin",
		"https://app.example:":   "is not an origin",
		"https://app.example, x": "is not an origin",
		"https://bücher.example": "as browsers send it, xn--",
	} {
		_, err := auth.NewOrigins([]string{"https://good.example", text})
		require.ErrorContains(t, err, want, text)
	}
}

func TestCORSHeadersAreForAllowedOriginsAlone(t *testing.T) {
	t.Parallel()
	origins, err := auth.NewOrigins([]string{"https://app.example"})
	require.NoError(t, err)
	handler := origins.CORS(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	send := func(method, origin, asked string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/agui/Gate", nil)
		r.Host = "gw.example"
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		if asked != "" {
			r.Header.Set("Access-Control-Request-Method", asked)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Equal(t, []string{"Origin"}, w.Header().Values("Vary"), "caches keep the responses of origins apart")
		require.NotEqual(t, "*", w.Header().Get("Access-Control-Allow-Origin"))
		require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"))
		return w
	}
	w := send(http.MethodPost, "https://app.example", "")
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, "https://app.example", w.Header().Get("Access-Control-Allow-Origin"))
	require.Empty(t, w.Header().Get("Access-Control-Allow-Methods"))

	w = send(http.MethodOptions, "https://app.example", "POST")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, "https://app.example", w.Header().Get("Access-Control-Allow-Origin"))
	require.Equal(t, "GET, POST, OPTIONS", w.Header().Get("Access-Control-Allow-Methods"))
	require.Equal(t, "authorization, content-type, last-event-id, x-app-id, x-copilotcloud-public-api-key, traceparent, tracestate", w.Header().Get("Access-Control-Allow-Headers"))
	require.Equal(t, "600", w.Header().Get("Access-Control-Max-Age"))

	for _, origin := range []string{"https://evil.example", "null", ""} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			w = send(method, origin, "")
			require.Equal(t, http.StatusTeapot, w.Code)
			require.Len(t, w.Header(), 2, "no header but Vary and that it cannot be embedded")
		}
	}
	for _, origin := range []string{"https://evil.example", "null"} {
		w = send(http.MethodOptions, origin, "POST")
		require.Equal(t, http.StatusNoContent, w.Code)
		require.Len(t, w.Header(), 2, "no header but Vary and that it cannot be embedded")
	}
}

func TestDevelopmentIsForThisMachineAlone(t *testing.T) {
	t.Parallel()
	for listen, may := range map[string]bool{
		"127.0.0.1:8090": true, "localhost:8090": true, "[::1]:0": true, "127.9.9.9:1": true,
		":8090": false, "0.0.0.0:8090": false, "[::]:8090": false, "192.168.1.1:8090": false, "gw.example:8090": false,
		"127.0.0.1": false, "": false, "127.0.0.1.evil.example:80": false, "[fe80::1%lo]:80": false, "[::1%eth0]:80": false,
	} {
		_, err := auth.NewDevelopment(listen, nil)
		require.Equal(t, may, err == nil, "%s: %v", listen, err)
	}

	d, err := auth.NewDevelopment("127.0.0.1:8090", nil)
	require.NoError(t, err)
	for host, may := range map[string]bool{
		"127.0.0.1:8090": true, "127.0.0.1": true, "localhost:8090": true, "LOCALHOST": true, "[::1]:8090": true, "[::1]": true, "::1": true,
		"127.0.0.2": true, "localho\u017ft": false, "[::ffff:127.0.0.1]:80": true,
		"evil.example:8090": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.nip.io:8090": false, "": false, ":8090": false,
		"0.0.0.0:8090": false, "10.0.0.1": false, "2130706433": false, "127.1": false, "0x7f.1": false, "localhost.": false, "localhost:80:80": false,
		"evil.example@127.0.0.1": false, "127.0.0.1 evil.example": false, "[::1%25lo]": false, "[[::1]]": false,
	} {
		id, err := d.Authenticate(t.Context(), auth.Request{Host: host})
		if !may {
			require.ErrorIs(t, err, auth.ErrForbidden, host)
			continue
		}
		require.NoError(t, err, host)
		require.NoError(t, id.MayUse("acme", "ada", "Gate", "c1"))
		require.NoError(t, id.MayUse("globex", "", "", ""))
		require.True(t, id.Has(auth.RoleOperator))
	}
}

func TestPagesOfOtherSitesCannotUseDevelopment(t *testing.T) {
	t.Parallel()
	origins, err := auth.NewOrigins([]string{"http://localhost:5173"})
	require.NoError(t, err)
	d, err := auth.NewDevelopment("127.0.0.1:8090", origins)
	require.NoError(t, err)
	for origin, may := range map[string]bool{
		"": true, "http://127.0.0.1:8090": true, "http://localhost:5173": true,
		"https://evil.example": false, "null": false, "http://127.0.0.1:9999": false, "http://localhost:8090": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/agui/Gate", nil)
		r.Host = "127.0.0.1:8090"
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		_, err := auth.Check(r, d, auth.HeaderOnly)
		require.Equal(t, may, err == nil, "%s: %v", origin, err)
		if !may {
			require.ErrorIs(t, err, auth.ErrForbidden)
		}
	}
}

func TestProxiesDoNotOpenDevelopmentToOthers(t *testing.T) {
	t.Parallel()
	d, err := auth.NewDevelopment("127.0.0.1:8090", nil)
	require.NoError(t, err)
	for _, c := range []struct {
		header, value string
		may           bool
	}{
		{"X-Forwarded-For", "127.0.0.1", true},
		{"X-Forwarded-For", "::1, ::ffff:127.0.0.1", true},
		{"X-Forwarded-Host", "localhost:3000", true},
		{"X-Forwarded-Proto", "https", true},
		{"X-Forwarded-For", "203.0.113.7", false},
		{"X-Forwarded-For", "127.0.0.1, 203.0.113.7", false},
		{"X-Forwarded-For", "203.0.113.7, 127.0.0.1", false},
		{"X-Forwarded-For", "unknown", false},
		{"X-Forwarded-For", "", false},
		{"X-Forwarded-Host", "abc.tunnel.example", false},
		{"X-Real-IP", "203.0.113.7", false},
		{"Forwarded", "for=203.0.113.7", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/agui/Gate", nil)
		r.Host = "127.0.0.1:8090"
		r.Header.Set(c.header, c.value)
		_, err := auth.Check(r, d, auth.HeaderOnly)
		require.Equal(t, c.may, err == nil, "%+v: %v", c, err)
	}
}
