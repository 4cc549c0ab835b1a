package gateway_test

import (
	"bufio"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
)

func TestJournalThatIsCreatedAgainEndsSocketsAndIsOpenedAgain(t *testing.T) {
	t.Parallel()
	g := open(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	js, err := jetstream.New(g.nc)
	require.NoError(t, err)
	for _, name := range []string{"ONETURN_IN", "KV_ONETURN_TURNS"} {
		require.NoError(t, js.DeleteStream(t.Context(), name))
	}
	code, reason, _ := s.closed()
	require.Equal(t, websocket.StatusServiceRestart, code)
	require.Equal(t, "journal_replaced", reason)
	require.Error(t, g.gateway.Ready())
	g.server.Provision()
	require.Eventually(t, func() bool { return g.gateway.Ready() == nil }, 20*time.Second, 50*time.Millisecond)
	g.socket("ada", "c", "?after=5").until(boundaryType)
}

func TestStreamWithoutEventsIsKeptAlive(t *testing.T) {
	t.Parallel()
	g := open(t, func(o *gateway.Options) { o.KeepAlive = 50 * time.Millisecond })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.http.URL+"/api/chats/app/c/events", nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer ada")
	got, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	for range 4 {
		require.True(t, lines.Scan())
		if line := lines.Text(); line != "" {
			require.Equal(t, ": keep-alive", line)
		}
	}
}
