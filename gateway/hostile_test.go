package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/gateway/auth"
)

// unusualIDs are ids that are not the chat c, but could be taken for it, for all chats or for a path.
func unusualIDs() []string {
	return []string{
		"*", ">", "c.>", "c.*", "*.c", " c", "c ", "c.", ".c", ".", "..", "../c", "c/", "C", "c;", "c?", "c#", "=63", "-", "ｃ", "с", "c\u200b", "c\u0301", "%63", "%2563", "$KV.ONETURN_TURNS.>",
		"e.app.c", "_INBOX.>", "c' or 1=1", "{chat}", "null", "[\"c\"]", strings.Repeat("c", 1024),
	}
}

// star has tenants that no issuer should name.
func star(o *gateway.Options) {
	all := people()
	all["star"] = auth.Identity{Apps: unusualIDs(), User: "ada"}
	o.Auth = all
}

// Ids become parts of subjects: none of them is a wildcard, another level or another id.
func TestIDNamesItsOwnChatWhateverItLooksLike(t *testing.T) {
	t.Parallel()
	g := openShopWith(t, star)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	require.Contains(t, string(g.get("ada", "/api/chats/app/c/events").body), "tool_call")
	for _, id := range unusualIDs() {
		in, of := url.PathEscape(id), "/api/chats/"+url.PathEscape(id)+"/c"
		for _, c := range []struct{ token, chat string }{{"ada", "/api/chats/app/" + in}, {"star", of}} {
			var page struct {
				Code          string
				Events, Waits []any
			}
			r := g.get(c.token, c.chat+"/events")
			require.Equal(t, http.StatusOK, r.status, "%q %s", id, r.body)
			r.into(&page)
			require.Empty(t, page.Events, "%q", id)
			g.get(c.token, c.chat+"/waits").into(&page)
			require.Empty(t, page.Waits, "%q", id)
			require.Equal(t, "unknown", g.post(c.token, c.chat+"/cancel", map[string]any{"turn": "t"}).code(), "%q", id)
			require.Equal(t, http.StatusForbidden, g.get("ada", of+"/events").status, "%q is another tenant", id)
		}
		require.Equal(t, "unknown", g.post("ada", "/api/chats/app/c/cancel", map[string]any{"turn": id}).code(), "%q", id)
		require.Equal(t, "unknown", g.post("ada", "/api/chats/app/c/cancel", map[string]any{"tool_call_id": id}).code(), "%q", id)
	}
}

// A message in a chat with an unusual id is in that chat alone.
func TestMessageInAnUnusualChatIsReadThereAlone(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	mine := g.socket("ada", "c", "")
	mine.until("chat.resume_boundary")
	for _, id := range []string{"*", ">", "c.>", "c ", ".."} {
		s, refused := g.dial("ada", "/ws/Shop/app/"+url.PathEscape(id)+"/me")
		require.Zero(t, refused)
		s.send(map[string]any{"type": "user.input.submit", "text": "in " + id, "message_id": id})
		f, _ := s.until("chat.user_message")
		require.Equal(t, "in "+id, f.Data["content"])
		require.Equal(t, id, f.Data["chat_id"])
	}
	mine.send(map[string]any{"type": "user.input.submit", "text": "last", "message_id": "last"})
	f, before := mine.until("chat.user_message")
	require.Equal(t, "last", f.Data["content"])
	for _, b := range before {
		require.Equal(t, "ack.input", b.Type)
	}
}

func TestPathIsNotNormalized(t *testing.T) {
	t.Parallel()
	g := open(t)
	for _, path := range []string{
		"//api/chats/app/c/events", "/api//chats/app/c/events", "/./api/chats/app/c/events", "/x/../api/chats/app/c/events", "/api/chats/app/c/events/", "/api/chats/app/c/events/.",
		"/API/chats/app/c/events", "/api/chats/app/c/%65vents/x", "/api/chats/app/c%2fevents", "/api%2fchats/app/c/events", "/api/chats/app/c/events;x=1", "/api/chats/app/c/events%00",
		"/api/chats/app/c/%65vents",
	} {
		r := g.get("ada", path)
		require.Equal(t, http.StatusNotFound, r.status, path)
		require.Equal(t, "not_found", r.code(), path)
	}
}

// raw sends bytes, and reads replies until the connection ends or so many have come.
func (g *gate) raw(text string, most int) (replies []*reply) {
	g.Helper()
	conn, err := (&net.Dialer{}).DialContext(g.Context(), "tcp", strings.TrimPrefix(g.http.URL, "http://"))
	require.NoError(g, err)
	defer conn.Close()
	require.NoError(g, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write([]byte(text))
	require.NoError(g, err)
	reader := bufio.NewReader(conn)
	for len(replies) < most {
		got, err := http.ReadResponse(reader, nil)
		if err != nil {
			break
		}
		body, err := io.ReadAll(got.Body)
		require.NoError(g, err)
		require.NoError(g, got.Body.Close())
		replies = append(replies, &reply{g.T, got.StatusCode, got.Header, body})
		if got.Close {
			break
		}
	}
	return replies
}

func TestAmbiguousRequestsAreRefused(t *testing.T) {
	t.Parallel()
	g := open(t)
	const begin = "GET /api/chats/app/c/events HTTP/1.1\r\nHost: gateway.example\r\n"
	for headers, want := range map[string]int{
		"Authorization: Bearer ada\r\n":                                                                                    http.StatusOK,
		"Authorization: Bearer ada\r\nAuthorization: Bearer ada\r\n":                                                       http.StatusOK,
		"Authorization: Bearer ada\r\nAuthorization: Bearer bob\r\n":                                                       http.StatusUnauthorized,
		"Authorization: Bearer eve\r\nAuthorization: Bearer ada\r\n":                                                       http.StatusUnauthorized,
		"Authorization: Bearer ada, Bearer bob\r\n":                                                                        http.StatusUnauthorized,
		"Authorization: ada\r\n":                                                                                           http.StatusUnauthorized,
		"Authorization : Bearer ada\r\n":                                                                                   http.StatusBadRequest,
		"X-Forwarded-User: ada\r\nX-Auth-User: ada\r\nX-App-Id: app\r\n":                                                   http.StatusUnauthorized,
		"Cookie: access_token=ada; token=ada\r\n":                                                                          http.StatusUnauthorized,
		"Authorization: Bearer eve\r\nX-Original-URL: /api/chats/other/c/events\r\n":                                       http.StatusForbidden,
		"Authorization: Bearer eve\r\nX-App-Id: app\r\nX-User-Id: ada\r\nX-Forwarded-For: 127.0.0.1\r\n":                   http.StatusForbidden,
		"Authorization: Bearer ada\r\nHost: other.example\r\n":                                                             http.StatusBadRequest,
		"Authorization: Bearer ada\r\nContent-Length: 1\r\nContent-Length: 2\r\n":                                          http.StatusBadRequest,
		"Authorization: Bearer ada\r\nTransfer-Encoding: chunked, identity\r\n":                                            http.StatusNotImplemented,
		"Authorization: Bearer ada\r\nOrigin: https://app.example\r\nOrigin: https://evil.example\r\nSec-WebSocket: x\r\n": http.StatusOK,
	} {
		got := g.raw(begin+headers+"Connection: close\r\n\r\n", 1)
		require.Len(t, got, 1, headers)
		require.Equal(t, want, got[0].status, "%s%s", headers, got[0].body)
		require.Empty(t, got[0].header.Get("Access-Control-Allow-Origin"), headers)
	}
	for _, query := range []string{"access_token=ada", "token=ada", "authorization=Bearer%20ada"} {
		require.Equal(t, "token_missing", g.get("", "/api/chats/app/c/events?"+query).code(), "a token in a query counts for WebSockets alone")
	}
}

// A proxy that reads the length of a body in another way takes the rest of it for another request.
func TestBodyCannotHideAnotherRequest(t *testing.T) {
	t.Parallel()
	g := open(t)
	const hidden = "GET /api/chats/app/c/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ada\r\n\r\n"
	for _, method := range []string{"POST /api/tool-call/respond", "GET /api/chats/app/c/events", "POST /none"} {
		for _, lengths := range []string{
			fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", len(hidden)+5),
			fmt.Sprintf("Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n0\r\n\r\n", len(hidden)+5),
		} {
			got := g.raw(method+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+lengths+hidden, 2)
			require.Len(t, got, 1, "the connection ends after the first reply: %s", method)
			require.NotEqual(t, http.StatusOK, got[0].status)
		}
	}
}

// Only GET and POST do anything, and only where they belong.
func TestOtherMethodsDoNothing(t *testing.T) {
	t.Parallel()
	g := open(t)
	for path, allow := range map[string]string{
		"/api/chats/app/c/events": "GET", "/api/chats/app/c/waits": "GET", "/api/chats/app/c/blobs/x": "GET", "/api/tool-call/respond": "POST",
		"/api/chats/app/c/cancel": "POST", "/agui": "POST", "/ws/Shop/app/c/me": "GET", "/agui/Shop": "POST",
	} {
		for _, method := range []string{"HEAD", "OPTIONS", "TRACE", "PUT", "PATCH", "DELETE", "PROPFIND", "get"} {
			got := g.do(method, "ada", path, nil, "X-Canary", "canary", "X-Http-Method-Override", allow)
			require.Equal(t, http.StatusMethodNotAllowed, got.status, "%s %s", method, path)
			require.Equal(t, allow, got.header.Get("Allow"))
			require.Equal(t, "no-store", got.header.Get("Cache-Control"))
			require.NotContains(t, string(got.body), "canary", "TRACE sends headers back")
		}
	}
}

func TestPreflightOfAForeignPageAllowsNothing(t *testing.T) {
	t.Parallel()
	g := open(t)
	for origin, allowed := range map[string]bool{
		"https://app.example": true, "https://evil.example": false, "null": false, "https://app.example.evil.example": false, "https://app.example:444": false,
		"http://app.example": false, "https://APP.example@evil.example": false, "https://app.example/": false, "file://": false, "https://app.example, https://evil.example": false,
	} {
		r := g.do("OPTIONS", "", respondPath, nil, "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, content-type, traceparent")
		require.Equal(t, http.StatusNoContent, r.status, origin)
		require.Equal(t, allowed, r.header.Get("Access-Control-Allow-Origin") == origin, origin)
		require.Equal(t, allowed, r.header.Get("Access-Control-Allow-Headers") != "", origin)
		require.Empty(t, r.header.Get("Access-Control-Allow-Credentials"), origin)
		require.Equal(t, "Origin", r.header.Get("Vary"))
		if allowed {
			require.Contains(t, r.header.Get("Access-Control-Allow-Headers"), "traceparent")
		}
	}
}

func TestNothingOfAChatIsCachedOrEmbedded(t *testing.T) {
	t.Parallel()
	g := open(t)
	for path, accept := range map[string]string{
		"/api/chats/app/c/events": "application/json", "/api/chats/app/s/events": "text/event-stream", "/api/chats/app/c/waits": "", "/api/chats/app/c/blobs/x": "",
		"/agui/info": "", "/none": "", "/api/chats/other/c/events": "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.http.URL+path, http.NoBody)
		require.NoError(t, err)
		r.Header = http.Header{"Authorization": {"Bearer ada"}, "Accept": {accept}}
		got, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Contains(t, got.Header.Get("Cache-Control"), "no-store", path)
		require.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "same-origin", got.Header.Get("Cross-Origin-Resource-Policy"), path)
		require.Empty(t, got.Header.Get("ETag")+got.Header.Get("Last-Modified")+got.Header.Get("Server")+got.Header.Get("X-Powered-By"), path)
	}
}

func TestBlobIsServedWholeToThoseWhoMaySeeItsChatAlone(t *testing.T) {
	t.Parallel()
	g := openShopWith(t, star)
	g.await(g.turn("c", "t", "ada", "Printer", "Order", map[string]any{"item": "lamp"}))
	g.await(g.turn("d", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	found := string(g.get("ada", "/api/chats/app/c/events").body)
	at := strings.Index(found, `"$blob":"`)
	require.Positive(t, at, found[:min(len(found), 2000)])
	name, _, _ := strings.Cut(found[at+len(`"$blob":"`):], `"`)
	const chat = "/api/chats/app/c/blobs/"
	whole := g.get("ada", chat+url.PathEscape(name))
	require.Equal(t, http.StatusOK, whole.status)
	require.Greater(t, len(whole.body), 700<<10)
	require.Contains(t, whole.header.Get("Content-Disposition"), "attachment")
	require.Equal(t, "application/json", whole.header.Get("Content-Type"))
	require.Equal(t, "default-src 'none'; sandbox", whole.header.Get("Content-Security-Policy"))
	part := g.get("ada", chat+url.PathEscape(name), "Range", "bytes=0-1", "If-None-Match", "*")
	require.Equal(t, http.StatusOK, part.status, "no ranges, no validators")
	require.Len(t, part.body, len(whole.body))

	for what, r := range map[string]*reply{
		"another user":          g.get("bob", chat+name),
		"another tenant":        g.get("eve", chat+name),
		"the tenant of a token": g.get("eve", "/api/chats/other/c/blobs/"+name),
		"another chat":          g.get("ada", "/api/chats/app/d/blobs/"+name),
		"a chat without owner":  g.get("bob", "/api/chats/app/empty/blobs/"+name),
	} {
		require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound}, r.status, what)
		require.Less(t, len(r.body), 500, what)
	}
	parts := strings.Split(name, ".")
	for i := range parts {
		for _, by := range []string{"*", ">", "", "..", "%2e", "x"} {
			forged := strings.Split(name, ".")
			forged[i] = by
			require.Equal(t, "not_found", g.get("ada", chat+url.PathEscape(strings.Join(forged, "."))).code(), "%v", forged)
		}
	}
	for _, id := range unusualIDs() {
		require.Equal(t, "not_found", g.get("ada", chat+url.PathEscape(id)).code(), "%q", id)
	}
}

// lines is a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestTokensAndTextsOfUsersAreNotLogged(t *testing.T) {
	t.Parallel()
	log := &lines{}
	g := open(t, func(o *gateway.Options) {
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Limits.TenantRate = -1
	})
	for _, path := range []string{"/api/chats/app/c/events", "/none", "/agui/info", "/api/chats/%ff/c/events", "/ws/Shop/app/c/me", respondPath} {
		g.do("GET", "canary", path+"?access_token=canary&token=canary", nil)
		g.do("POST", "ada", path+"?access_token=canary", []byte(`{"chat_id":"c","tool_call_id":"t/1/canary","response":"canary"`))
	}
	s, refused := g.dial("canary", "/ws/Shop/app/c/me?access_token=canary")
	require.Zero(t, refused)
	s.closed()
	g.nc.Close()
	require.NotContains(t, log.String(), "canary")
}

func TestManyParametersAndHeadersCostLittle(t *testing.T) {
	t.Parallel()
	g := open(t)
	began := time.Now()
	r := g.get("ada", "/api/chats/app/c/events?"+strings.Repeat("after=1&a[]=%41&", 30_000)+"limit=1")
	require.Less(t, r.status, http.StatusInternalServerError)
	header := make([]string, 0, 4_000)
	for i := range 2_000 {
		header = append(header, fmt.Sprintf("X-%d", i), "x")
	}
	require.Equal(t, http.StatusOK, g.get("ada", "/api/chats/app/c/events", header...).status)
	require.Less(t, time.Since(began), 10*time.Second)
	for _, query := range []string{"after=-1", "after=1e3", "after=18446744073709551616", "after=0x10", "after=%201", "limit=0", "limit=-1", "limit=1e9", "limit=1000000000", "limit=99999999999999999999"} {
		require.Equal(t, http.StatusBadRequest, g.get("ada", "/api/chats/app/c/events?"+query).status, query)
	}
}

// What a body names never counts more than the token.
func TestBodyCannotNameAnotherChatUserOrTenantInAnyOfItsNames(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	question := g.ask()
	for _, change := range []map[string]any{
		{"app_id": "other"},
		{"enterprise_id": "other"},
		{"context": map[string]any{"app_id": "other"}},
		{"user_id": "bob"},
		{"app_id": "*"},
		{"app_id": "app "},
		{"user_id": "ADA"},
		{"chat_id": "*"},
		{"tool_call_id": "t.>"}, // these wait for a question that may come
	} {
		body := answerTo(question, "approved")
		maps.Copy(body, change)
		r := g.do("POST", "ada", respondPath, events.JSONOf(body))
		require.Contains(t, []int{http.StatusForbidden, http.StatusNotFound, http.StatusBadRequest}, r.status, "%v: %s", change, r.body)
	}
	require.Equal(t, "accepted", g.post("ada", respondPath, answerTo(question, "approved")).code(), "the question is still open")
}
