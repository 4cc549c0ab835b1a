package gateway_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway"
	"github.com/oneturn/oneturn/internal/test/harness"
)

func TestDrainClosesSocketsAndTakesNoNewOnes(t *testing.T) {
	t.Parallel()
	g := open(t)
	s := g.socket("ada", "c", "")
	s.until(boundaryType)
	require.Eventually(t, func() bool { return g.gateway.Ready() == nil }, 20*time.Second, 5*time.Millisecond)
	drained := make(chan error, 1)
	go func() { drained <- g.gateway.Drain(context.WithoutCancel(t.Context())) }()
	code, reason, _ := s.closed()
	require.Equal(t, websocket.StatusGoingAway, code)
	require.Equal(t, "drain", reason)
	require.NoError(t, <-drained)
	require.Error(t, g.gateway.Ready())
	_, refused := g.dial("ada", "/ws/Shop/app/c/ada")
	require.Equal(t, http.StatusServiceUnavailable, refused)
	require.Equal(t, http.StatusServiceUnavailable, g.get("ada", "/api/chats/app/c/events", "Accept", "text/event-stream").status)
	require.Equal(t, http.StatusOK, g.get("ada", "/api/chats/app/c/events").status)
}

func TestGatewayIsNotReadyWhileNATSIsGoneOrTheEndOfTheJournalIsNotReached(t *testing.T) {
	t.Parallel()
	server := harness.NewServer(t)
	proxy := harness.NewProxy(t, strings.TrimPrefix(server.URL(), "nats://"))
	nc, err := nats.Connect(proxy.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	proxy.Delay(50 * time.Millisecond)
	g, err := gateway.New(t.Context(), gateway.Options{NATS: nc, Auth: people()})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	require.Error(t, g.Ready(), "it has to ask the server for a consumer first")
	proxy.Delay(0)
	ready := func() bool { return g.Ready() == nil }
	require.Eventually(t, ready, 20*time.Second, 5*time.Millisecond)
	proxy.Refuse(true)
	proxy.Cut()
	require.Eventually(t, func() bool { return !ready() }, 20*time.Second, 5*time.Millisecond)
	require.ErrorContains(t, g.Ready(), "no connection to NATS")
	proxy.Refuse(false)
	require.Eventually(t, ready, 20*time.Second, 5*time.Millisecond)
}

func TestDrainLetsASocketHaveTheVerdictOfItsAnswer(t *testing.T) {
	t.Parallel()
	g := open(t)
	stop := g.runWorker()
	question := g.ask()
	stop()
	sub := g.subscribe("oneturn.in.default.tool_call_response.>")
	s := g.socket("ada", "c", "")
	s.send(map[string]any{"type": "tool_call_response", "tool_call_id": question, "response": map[string]any{"status": "approved"}})
	_, err := sub.NextMsg(20 * time.Second)
	require.NoError(t, err)
	drained := make(chan error, 1)
	go func() { drained <- g.gateway.Drain(context.WithoutCancel(t.Context())) }()
	require.Eventually(t, func() bool { return g.gateway.Ready() != nil }, 20*time.Second, time.Millisecond)
	defer g.runWorker()()
	f, _ := s.until("ack.tool_call_response")
	require.Equal(t, "accepted", f.Data["code"])
	_, reason, _ := s.closed()
	require.Equal(t, "drain", reason)
	require.NoError(t, <-drained)
}
