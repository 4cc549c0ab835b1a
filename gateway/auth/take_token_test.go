package auth_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

const protocols = "Sec-WebSocket-Protocol"

// requestWith returns a request as a server reads it. Headers are pairs of name and value.
func requestWith(t *testing.T, query string, headers ...string) *http.Request {
	t.Helper()
	target := "/ws/Gate/acme/c1/ada"
	if query != "" {
		target += "?" + query
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestTokensAreFoundAndRemoved(t *testing.T) {
	t.Parallel()
	const bearer = "Authorization"
	for _, c := range []struct {
		query     string
		headers   []string
		header    string // the token by HeaderOnly; "!" if invalid
		socket    string // by WebSocket
		restQuery string
		restOffer string
	}{
		{"", nil, "", "", "", ""},
		{"", []string{bearer, "Bearer t1"}, "t1", "t1", "", ""},
		{"", []string{bearer, "bearer t1"}, "t1", "t1", "", ""},
		{"", []string{bearer, "BEARER \t t1 "}, "t1", "t1", "", ""},
		{"", []string{bearer, "Bearer"}, "", "", "", ""},
		{"", []string{bearer, "Bearer "}, "", "", "", ""},
		{"", []string{bearer, "Basic dDE6dDE="}, "", "", "", ""},
		{"", []string{bearer, "Bearert1"}, "", "", "", ""},
		{"", []string{bearer, "t1"}, "", "", "", ""},
		{"", []string{bearer, "Bearer t1 t2"}, "!", "!", "", ""},
		{"", []string{bearer, "Bearer t1,Bearer t1"}, "!", "!", "", ""},
		{"", []string{bearer, `Bearer "t1"`}, "!", "!", "", ""},
		{"", []string{bearer, "Bearer tö"}, "!", "!", "", ""},
		{"", []string{bearer, "Bearer ="}, "!", "!", "", ""},
		{"", []string{bearer, "Bearer t=1"}, "!", "!", "", ""},
		{"", []string{bearer, "Bearer t1=="}, "t1==", "t1==", "", ""},
		{"", []string{bearer, "Bearer aZ09-._~+/"}, "aZ09-._~+/", "aZ09-._~+/", "", ""},
		{"", []string{bearer, "Bearer t1", bearer, "Bearer t1"}, "t1", "t1", "", ""},
		{"", []string{bearer, "Bearer t1", bearer, "Bearer t2"}, "!", "!", "", ""},
		{"", []string{bearer, "Basic x", bearer, "Bearer t1"}, "t1", "t1", "", ""},
		{"", []string{bearer, "Bearer " + strings.Repeat("a", auth.MaxToken)}, strings.Repeat("a", auth.MaxToken), strings.Repeat("a", auth.MaxToken), "", ""},
		{"", []string{bearer, "Bearer " + strings.Repeat("a", auth.MaxToken+1)}, "!", "!", "", ""},

		{"access_token=t1", nil, "", "t1", "", ""},
		{"after=5&access_token=t1&limit=2", nil, "", "t1", "after=5&limit=2", ""},
		{"after=a%20b&access_token=t%31", nil, "", "t1", "after=a%20b", ""},
		{"%61ccess%5Ftoken=t1&x", nil, "", "t1", "x", ""},
		{"access_token=", nil, "", "", "", ""},
		{"access_token", nil, "", "", "", ""},
		{"access_token=t1&access_token=t1", nil, "", "t1", "", ""},
		{"access_token=t1&access_token=t2", nil, "", "!", "", ""},
		{"access_token=t1+t2", nil, "", "!", "", ""},
		{"access_token=t1%0a", nil, "", "!", "", ""},
		{"Access_Token=t1", nil, "", "", "", ""},
		{"access_token=t%zz&after=1", nil, "", "", "after=1", ""},
		{"x=%zzaccess_token&after=1", nil, "", "", "after=1", ""},
		{"access_token%zz=t1&after=1", nil, "", "", "after=1", ""},
		{"x;access_token=t1&after=1", nil, "", "", "after=1", ""},
		{"after=1;access_token=t1", nil, "", "", "", ""},
		{"access_token=t1", []string{bearer, "Bearer t1"}, "t1", "t1", "", ""},
		{"access_token=t2", []string{bearer, "Bearer t1"}, "t1", "!", "", ""},

		{"", []string{protocols, "oneturn, bearer.t1"}, "", "t1", "", "oneturn"},
		{"", []string{protocols, "bearer.t1"}, "", "t1", "", ""},
		{"", []string{protocols, "bearer."}, "", "", "", ""},
		{"", []string{protocols, "Bearer.t1,oneturn"}, "", "", "", "oneturn"},
		{"", []string{protocols, "x bearer.t1, \"bearer.t1\", oneturn"}, "", "", "", "oneturn"},
		{"", []string{protocols, "a,,bearer.t1", protocols, "b"}, "", "t1", "", "a, b"},
		{"", []string{protocols, "bearer.t1, bearer.t2"}, "", "!", "", ""},
		{"", []string{protocols, "bearer.a.b.c"}, "", "a.b.c", "", ""},
		{"access_token=t1", []string{bearer, "Bearer t1", protocols, "bearer.t1"}, "t1", "t1", "", ""},
		{"access_token=t1", []string{protocols, "bearer.t2"}, "", "!", "", ""},
		{"access_token=t1", []string{bearer, "Bearer t2", protocols, "bearer.t1"}, "t2", "!", "", ""},
	} {
		for from, want := range map[auth.Source]string{auth.HeaderOnly: c.header, auth.WebSocket: c.socket} {
			r := requestWith(t, c.query, c.headers...)
			token, err := auth.TakeToken(r, from)
			if want == "!" {
				require.ErrorIs(t, err, auth.ErrTokenInvalid, "%+v", c)
				require.Empty(t, token)
			} else {
				require.NoError(t, err, "%+v", c)
				require.Equal(t, want, token, "%+v", c)
			}
			require.Empty(t, r.Header.Values("Authorization"))
			require.Equal(t, c.restQuery, r.URL.RawQuery, "%+v", c)
			require.Equal(t, c.restOffer, r.Header.Get(protocols), "%+v", c)
			require.Equal(t, r.URL.RequestURI(), r.RequestURI)
		}
	}
}

func TestTokensAreRemovedFromAFormThatWasRead(t *testing.T) {
	t.Parallel()
	r := requestWith(t, "access_token=t1&after=1")
	require.NoError(t, r.ParseForm())
	token, err := auth.TakeToken(r, auth.WebSocket)
	require.NoError(t, err)
	require.Equal(t, "t1", token)
	require.Equal(t, url.Values{"after": {"1"}}, r.Form)
}

func TestCheckAuthenticatesTheTokenOfARequest(t *testing.T) {
	t.Parallel()
	s := rs256()
	is := newIssuer(t, s.public(nil))
	jwt := is.authenticator(t)
	static := openTokens(t, entry("t1", "user: ada")+entry("old", "user: ada, expires: 2020-01-01"))
	a := auth.Chain{static, jwt}
	check := func(from auth.Source, query string, headers ...string) error {
		_, err := auth.Check(requestWith(t, query, headers...), a, from)
		return err
	}
	jwtToken := s.sign(is.claims(nil), nil)
	require.NoError(t, check(auth.HeaderOnly, "", "Authorization", "Bearer t1"))
	require.NoError(t, check(auth.HeaderOnly, "", "Authorization", "Bearer "+jwtToken))
	require.NoError(t, check(auth.WebSocket, "access_token="+jwtToken))
	require.NoError(t, check(auth.EventSource, "access_token="+jwtToken))
	require.ErrorIs(t, check(auth.EventSource, "", protocols, "bearer."+jwtToken), auth.ErrTokenMissing)
	require.ErrorIs(t, check(auth.HeaderOnly, "access_token="+jwtToken), auth.ErrTokenMissing)
	require.ErrorIs(t, check(auth.HeaderOnly, ""), auth.ErrTokenMissing)
	require.ErrorIs(t, check(auth.HeaderOnly, "", "Authorization", "Bearer t2"), auth.ErrTokenInvalid)
	require.ErrorIs(t, check(auth.HeaderOnly, "", "Authorization", "Bearer old"), auth.ErrTokenExpired)
	require.ErrorIs(t, check(auth.WebSocket, "access_token=t1", "Authorization", "Bearer "+jwtToken), auth.ErrTokenInvalid)
	_, err := auth.Check(requestWith(t, "", "Authorization", "Bearer t1"), auth.Chain{}, auth.HeaderOnly)
	require.Error(t, err, "without authenticators nothing is allowed")
}

func FuzzTakeToken(f *testing.F) {
	f.Add("Bearer t1", "access_token=t1&after=1", "oneturn, bearer.t1")
	f.Add("Basic x", "access%5Ftoken=t1;x", "bearer.a,bearer.b")
	f.Add("bearer\tt1", "&&=&%", ",")
	f.Fuzz(func(t *testing.T, header, query, offers string) {
		r := &http.Request{
			Header: http.Header{"Authorization": {header}, http.CanonicalHeaderKey(protocols): {offers}},
			URL:    &url.URL{Path: "/ws", RawQuery: query}, RequestURI: "/ws?" + query,
		}
		before := r.URL.Query()
		before.Del("access_token")
		token, err := auth.TakeToken(r, auth.WebSocket)
		if err != nil {
			require.ErrorIs(t, err, auth.ErrTokenInvalid)
			require.Empty(t, token)
		}
		require.LessOrEqual(t, len(token), auth.MaxToken)
		require.NotContains(t, r.Header, "Authorization")
		require.NotContains(t, strings.ToLower(r.Header.Get(protocols)), "bearer.")
		after, err := url.ParseQuery(r.URL.RawQuery)
		require.NoError(t, err)
		for name := range before { // what remains is what it was, without tokens
			if strings.EqualFold(name, "access_token") {
				delete(before, name)
			}
		}
		require.Equal(t, before, after)
		again, err := auth.TakeToken(r, auth.WebSocket)
		require.NoError(t, err)
		require.Empty(t, again)
	})
}
