package gateway_test

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/internal/test/harness"
)

func TestPathThatIsNotAnEndpointIsNotFoundAndAWrongMethodNamesTheRightOnes(t *testing.T) {
	t.Parallel()
	g := open(t)
	for _, path := range []string{"/", "/metrics", "/healthz", "/readyz", "/api/chats", "/api/chats/app", "/ws", "/api/chats/app//events"} {
		r := g.get("", path)
		require.Equal(t, http.StatusNotFound, r.status, path)
		require.Equal(t, "not_found", r.code())
	}
	r := g.get("ada", "/api/tool-call/respond")
	require.Equal(t, http.StatusMethodNotAllowed, r.status)
	require.Equal(t, "POST", r.header.Get("Allow"))
}

func TestEveryReplyIsJSONThatNoCacheStores(t *testing.T) {
	t.Parallel()
	g := open(t)
	for _, r := range []*reply{
		g.get("", "/nothing"), g.get("", "/api/chats/app/c/waits"), g.get("ada", "/api/chats/app/c/waits"), g.get("ada", "/api/chats/app/c/events"),
		g.post("ada", "/api/tool-call/respond", 1),
	} {
		var body struct {
			Status        int
			Code, Message string
		}
		r.into(&body)
		require.Equal(t, r.status, body.Status)
		require.NotEmpty(t, body.Code)
		require.NotEmpty(t, body.Message)
		require.Equal(t, "application/json", r.header.Get("Content-Type"))
		require.Equal(t, "no-store", r.header.Get("Cache-Control"))
		require.Equal(t, "nosniff", r.header.Get("X-Content-Type-Options"))
	}
}

func TestClientThatLeftBeforeItsReplyDoesNotCountAsAFailure(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	var log harness.Output
	g := open(t, func(o *gateway.Options) { o.Registry, o.Logger = registry, slog.New(slog.NewTextHandler(&log, nil)) })
	ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.http.URL+"/api/tool-call/respond", strings.NewReader(`{"chat_id":"c","tool_call_id":"q","response":1}`))
	require.NoError(t, err)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer ada"}}
	_, err = http.DefaultTransport.RoundTrip(r) //nolint:bodyclose // there is no reply
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var codes []string
	require.Eventually(t, func() bool {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				for _, label := range m.GetLabel() {
					if family.GetName() == "oneturn_gateway_requests_total" && label.GetName() == "code" {
						codes = append(codes, label.GetValue())
					}
				}
			}
		}
		return len(codes) > 0
	}, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, []string{"499"}, codes)
	require.NotContains(t, log.String(), "a request failed")
}

func TestEncodedSlashIsPartOfAnIDAndIsDecodedOnce(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	for _, chat := range []string{"a/b", "a%2Fb"} {
		turn := g.turn(chat, "t1", "ada", "Pieces", "Pieces", map[string]any{"count": 1})
		g.await(turn)
	}
	events := func(path string) (chats []string) {
		var page struct {
			Events []frame
		}
		g.get("ada", path).into(&page)
		for _, f := range page.Events {
			chats = append(chats, text(f.Data["chat_id"]))
		}
		return chats
	}
	require.Contains(t, events("/api/chats/app/a%2Fb/events"), "a/b")
	require.NotContains(t, events("/api/chats/app/a%2Fb/events"), "a%2Fb")
	require.Contains(t, events("/api/chats/app/a%252Fb/events"), "a%2Fb")
	for _, bad := range []string{"%00", "%ff", "%0a", strings.Repeat("a", 1025)} {
		require.Equal(t, "bad_path", g.get("ada", "/api/chats/app/"+bad+"/events").code())
	}
}

func TestPageOfAnotherOriginReadsNothing(t *testing.T) {
	t.Parallel()
	g := open(t)
	for origin, allowed := range map[string]string{"https://app.example": "https://app.example", "https://evil.example": "", "null": ""} {
		r := g.get("ada", "/api/chats/app/c/events", "Origin", origin)
		require.Equal(t, allowed, r.header.Get("Access-Control-Allow-Origin"), origin)
		_, refused := g.dial("ada", "/ws/Shop/app/c/ada", "Origin", origin)
		require.Equal(t, allowed == "", refused == http.StatusForbidden, origin)
	}
}

func TestUserWhoSendsTooMuchHasToWait(t *testing.T) {
	t.Parallel()
	g := open(t, limited)
	codes := map[int]int{}
	for range 4 {
		r := g.get("ada", "/api/chats/app/c/events")
		codes[r.status]++
		if r.status == http.StatusTooManyRequests {
			require.Equal(t, "rate_limited", r.code())
			require.NotEmpty(t, r.header.Get("Retry-After"))
		}
	}
	require.Equal(t, map[int]int{http.StatusOK: 2, http.StatusTooManyRequests: 2}, codes)
	require.Equal(t, http.StatusOK, g.get("bob", "/api/chats/app/c/events").status, "another user does not wait")
}

func TestServiceHasToWaitForEachUserThatItNamesAlone(t *testing.T) {
	t.Parallel()
	g := open(t, limited)
	harness.StartWorker(t, g.server, shop())
	g.await(g.turn("c", "t", "zoe", "Pieces", "Pieces", map[string]any{"count": 1}))
	named := func(user string) *reply {
		return g.post("service", respondPath, map[string]any{"chat_id": "c", "response": 1, "tool_call_id": "t/1", "user_id": user})
	}
	codes := map[string]int{}
	for range 3 {
		for _, user := range []string{"ada", "bob"} {
			codes[user+" "+named(user).code()]++
		}
	}
	require.Equal(t, map[string]int{"ada forbidden": 2, "ada rate_limited": 1, "bob forbidden": 2, "bob rate_limited": 1}, codes)
}

func TestTenantThatSendsTooMuchHasToWait(t *testing.T) {
	t.Parallel()
	g := open(t, func(o *gateway.Options) { o.Limits = gateway.Limits{Rate: -1, TenantRate: 1, Burst: 2} })
	codes := map[int]int{}
	for _, user := range []string{"ada", "bob", "ada", "bob"} {
		codes[g.get(user, "/api/chats/app/c/events").status]++
	}
	require.Equal(t, map[int]int{http.StatusOK: 2, http.StatusTooManyRequests: 2}, codes)
	require.Equal(t, http.StatusOK, g.get("eve", "/api/chats/other/c/events").status, "another tenant does not wait")
}

// The workflow in a path is what the client names: the chat has its own.
func TestTokenForAWorkflowDoesNotReadChatsOfOthers(t *testing.T) {
	t.Parallel()
	g := openShop(t)
	g.await(g.turn("c", "t", "ada", "Pieces", "Pieces", map[string]any{"count": 1}))
	for _, path := range []string{"/api/chats/app/c/events", "/api/chats/app/c/waits"} {
		require.Equal(t, http.StatusForbidden, g.get("narrow", path).status, path)
		require.Equal(t, http.StatusOK, g.get("ada", path).status, path)
		require.Equal(t, http.StatusForbidden, g.get("narrow", path).status, "also after another token of the user")
	}
	s, refused := g.dial("narrow", "/ws/Hello/app/c/me")
	require.Zero(t, refused)
	code, reason, frames := s.closed()
	require.Equal(t, websocket.StatusPolicyViolation, code)
	require.Equal(t, "forbidden", reason)
	require.Empty(t, frames)
}

// A server reads a part of the body before it replies: a client that sends none would hold the connection for ever.
func TestRefusalDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	g := open(t)
	for _, request := range []string{
		"POST /none HTTP/1.1", "POST /api/tool-call/respond HTTP/1.1", "GET /api/chats/app/c/events HTTP/1.1", "OPTIONS /agui/Shop HTTP/1.1",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(g.http.URL, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = conn.Write([]byte(request + "\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n"))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(5*time.Second)))
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err, request)
		require.Contains(t, line, "HTTP/1.1 ", request)
	}
}
