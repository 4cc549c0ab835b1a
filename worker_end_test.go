package oneturn_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/inbox"
	"github.com/oneturn/oneturn/turntest"
)

// F17: see docs/faults.md.
func TestWorkerEndsWithAnErrorWhenWhatItWorksOnIsDeletedOrItsConnectionClosed(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*testing.T, *nats.Conn, jetstream.JetStream) error{
		"consumer": func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) error {
			t.Helper()
			require.NoError(t, js.DeleteConsumer(t.Context(), "ONETURN_IN", "workers-default"))
			return inbox.ErrGone
		},
		"stream": func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) error {
			t.Helper()
			require.NoError(t, js.DeleteStream(t.Context(), "ONETURN_IN"))
			return inbox.ErrGone
		},
		"journal": func(t *testing.T, nc *nats.Conn, js jetstream.JetStream) error {
			t.Helper()
			require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_TURNS"))
			c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
			require.NoError(t, err)
			publish(t, c, turn("t", map[string]any{"name": "Ada"})) // a claim that nobody answers; without one it takes two looks
			return idempotency.ErrGone
		},
		"connection": func(_ *testing.T, nc *nats.Conn, _ jetstream.JetStream) error {
			nc.Close()
			return inbox.ErrClosed
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			nc := s.Connect()
			w, err := oneturn.NewWorker(nc, greeter())
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- w.Run(context.WithoutCancel(t.Context())) }()
			require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
			js, err := jetstream.New(s.Connect())
			require.NoError(t, err)
			want := damage(t, nc, js)
			require.ErrorIs(t, <-done, want)
			require.Error(t, w.Ready())
		})
	}
}

func TestWorkerSaysWhatIsMissingOnAServerWithoutStreams(t *testing.T) {
	t.Parallel()
	w, err := oneturn.NewWorker(turntest.NewServer(t).Connect(), greeter())
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "turnctl provision")
	_, err = oneturn.NewWorker(nil, oneturn.Config{Slots: -1, Pool: "a b"})
	require.ErrorContains(t, err, "Workflows")
	require.ErrorContains(t, err, "Slots")
	require.ErrorContains(t, err, "pool")
}

func TestToolsThatCanNeverRunAreReportedByNewWorker(t *testing.T) {
	t.Parallel()
	nc := turntest.NewServer(t).Connect()
	inference := oneturn.For("Hello", "Greeter", "Greeting")
	for name, tool := range map[string]oneturn.Tool{
		"bound to nothing": oneturn.NewTool("t", greet),
		"oneturn.For":      oneturn.NewTool("t", greet, oneturn.WithEffect(oneturn.Idempotent)),
		"null, boolean":    oneturn.NewTool("t", greet, inference, oneturn.WithSchema([]byte(`{"type":"objct"}`))),
		"object":           oneturn.NewTool("t", func(context.Context, string) (string, error) { return "", nil }, inference),
	} {
		_, err := oneturn.NewWorker(nc, oneturn.Config{Tools: []oneturn.Tool{tool}})
		require.ErrorContains(t, err, name)
	}
	_, err := oneturn.NewWorker(nil, greeter())
	require.Error(t, err)
}
