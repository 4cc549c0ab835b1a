package gateway_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// unfinished begins a request of a user with a body of a megabyte, whose end does not come. The gateway has room for it.
func (g *gate) unfinished(token string) net.Conn {
	g.Helper()
	conn, err := new(net.Dialer).DialContext(g.Context(), "tcp", strings.TrimPrefix(g.http.URL, "http://"))
	require.NoError(g, err)
	g.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		respondPath, token, 1<<20)
	require.NoError(g, err)
	begun, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(g, err)
	require.Contains(g, begun, "100 Continue")
	return conn
}

// What bodies take is bounded while they arrive too, of each user, however many connections that one has.
func TestUserWithManyUnfinishedBodiesWaitsAloneForRoom(t *testing.T) {
	t.Parallel()
	g := open(t)
	large := strings.Repeat("x", 1<<19)
	body, frame := []byte(`{"chat_id":"c","tool_call_id":"`+large+`"}`), []byte(`{"type":"none","x":"`+large+`"}`)
	full := g.socket("ada", "c", "")
	full.until("chat.resume_boundary")
	var open []net.Conn
	for range 16 { // megabytes, the share of a user
		open = append(open, g.unfinished("ada"))
	}
	full.sendText(frame)
	for _, token := range []string{"bob", "eve"} {
		require.NotEqual(t, http.StatusServiceUnavailable, g.do("POST", token, respondPath, body).status, token)
	}
	r := g.do("POST", "ada", respondPath, body)
	require.Equal(t, http.StatusServiceUnavailable, r.status)
	require.Equal(t, "unavailable", r.code())
	require.NotEmpty(t, r.header.Get("Retry-After"))
	code, reason, _ := full.closed()
	require.Equal(t, websocket.StatusTryAgainLater, code)
	require.Equal(t, "unavailable", reason)

	for _, conn := range open {
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool {
		return g.do("POST", "ada", respondPath, body).status != http.StatusServiceUnavailable
	}, 20*time.Second, 50*time.Millisecond)
	again := g.socket("ada", "c", "")
	again.until("chat.resume_boundary")
	again.sendText(frame)
	f, _ := again.until("error")
	require.Equal(t, "unknown_type", f.Data["code"])
}
