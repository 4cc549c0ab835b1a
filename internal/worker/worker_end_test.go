package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/tool"
)

// deleted deletes a stream; the worker has done nothing that needs it.
func deleted(name string) func(*testing.T, *nats.Conn, jetstream.JetStream) error {
	return func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) error {
		t.Helper()
		require.NoError(t, js.DeleteStream(t.Context(), name))
		return inbox.ErrGone
	}
}

// F17: see docs/faults.md.
func TestWorkerEndsWithAnErrorWhenWhatItWorksOnIsDeletedOrItsConnectionClosed(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*testing.T, *nats.Conn, jetstream.JetStream) error{
		"consumer": func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) error {
			t.Helper()
			require.NoError(t, js.DeleteConsumer(t.Context(), "ONETURN_IN", "workers-default"))
			return inbox.ErrGone
		},
		"consumer of timers": func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) error {
			t.Helper()
			require.NoError(t, js.DeleteConsumer(t.Context(), "ONETURN_TIMERS", "timers"))
			return inbox.ErrGone
		},
		"stream": deleted("ONETURN_IN"), "timers": deleted("ONETURN_TIMERS"), "context": deleted("KV_ONETURN_CONTEXT"),
		"blobs": deleted("OBJ_ONETURN_BLOBS"), "dead letters": deleted("ONETURN_DEAD"), "rates": deleted("KV_ONETURN_LIMITS"),
		"context re-created": func(t *testing.T, _ *nats.Conn, js jetstream.JetStream) error {
			t.Helper()
			stream, err := js.Stream(t.Context(), "KV_ONETURN_CONTEXT")
			require.NoError(t, err)
			require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_CONTEXT"))
			_, err = js.CreateStream(t.Context(), stream.CachedInfo().Config)
			require.NoError(t, err)
			return inbox.ErrGone
		},
		"journal": func(t *testing.T, nc *nats.Conn, js jetstream.JetStream) error {
			t.Helper()
			require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_TURNS"))
			c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
			require.NoError(t, err)
			publish(t, c, turn("t", map[string]any{"name": "Ada"})) // a claim without a reply; otherwise it takes two checks
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

// F17: see docs/faults.md. Turns that are under way when it happens hold up nothing: what a tool has to store in the
// variables of its chat has no outcome, and its message waits for a worker that can.
func TestWorkerEndsWhenTheContextBucketIsDeletedUnderARunningTool(t *testing.T) {
	t.Parallel()
	s := server(t)
	entered, gone := make(chan struct{}), make(chan struct{})
	tool := oneturn.NewTool("note", func(ctx context.Context, _ map[string]any) (string, error) {
		close(entered)
		<-gone
		return "done", tool.Vars(ctx).Set("x", "y")
	}, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{Tools: []oneturn.Tool{tool}, SoftStop: 100 * time.Millisecond, Slots: 1})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- w.Run(context.WithoutCancel(t.Context())) }()
	publish(t, client(t, s), turn("t", map[string]any{"name": "Ada"}))
	<-entered
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteKeyValue(t.Context(), "ONETURN_CONTEXT"))
	close(gone)
	err = <-done
	require.ErrorIs(t, err, inbox.ErrGone)
	require.ErrorContains(t, err, "stream KV_ONETURN_CONTEXT")
	require.ErrorContains(t, err, "turnctl provision")
}

// Workers without a rate run on servers that were provisioned before there were rates.
func TestWorkerNeedsNoBucketOfRatesThatItNeverHad(t *testing.T) {
	t.Parallel()
	s := server(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_LIMITS"))
	w := start(t, s, greeter())
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	require.Never(t, func() bool { return w.Ready() != nil }, 5*time.Second, 100*time.Millisecond)
}

func TestWorkerReportsWhatIsMissingOnAServerWithoutStreams(t *testing.T) {
	t.Parallel()
	w, err := oneturn.NewWorker(oneturntest.NewServer(t).Connect(), greeter())
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "turnctl provision")
	_, err = oneturn.NewWorker(nil, oneturn.Config{Slots: -1, Pool: "a b"})
	require.ErrorContains(t, err, "Workflows")
	require.ErrorContains(t, err, "Slots")
	require.ErrorContains(t, err, "pool")
}

func TestToolsThatCanNeverRunAreReportedByNewWorker(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	inference := oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"}
	noObject := inference
	noObject.Schema = []byte(`{"type":"objct"}`)
	for name, tool := range map[string]oneturn.Tool{
		"bound to nothing": oneturn.NewTool("t", greet, oneturn.ToolOptions{}),
		"ToolOptions":      oneturn.NewTool("t", greet, oneturn.ToolOptions{Effect: oneturn.Idempotent}),
		"null, boolean":    oneturn.NewTool("t", greet, noObject),
		"object":           oneturn.NewTool("t", func(context.Context, string) (string, error) { return "", nil }, inference),
	} {
		_, err := oneturn.NewWorker(nc, oneturn.Config{Tools: []oneturn.Tool{tool}})
		require.ErrorContains(t, err, name)
	}
	_, err := oneturn.NewWorker(nil, greeter())
	require.Error(t, err)
}

// A worker of a Go program checks what the command checks.
func TestWorkerRefusesAServerThatDropsAcceptedTurns(t *testing.T) {
	t.Parallel()
	s := server(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.MaxAge = time.Hour
	_, err = js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	pool := consumer.CachedInfo().Config
	pool.MaxDeliver = 5
	_, err = js.UpdateConsumer(t.Context(), "ONETURN_IN", pool)
	require.NoError(t, err)
	w, err := oneturn.NewWorker(s.Connect(), greeter())
	require.NoError(t, err)
	err = w.Run(t.Context())
	require.ErrorIs(t, err, provision.ErrNotReady)
	require.ErrorContains(t, err, "turns that were accepted would vanish")
	require.ErrorContains(t, err, "max_deliver is 5")
}
