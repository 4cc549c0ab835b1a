package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/tool"
)

// TestDrainOfAWorkerDoesNotWaitForABucketThatIsGone: the tool has run, and what it changed in the
// context variables cannot be written.
func TestDrainOfAWorkerDoesNotWaitForABucketThatIsGone(t *testing.T) {
	t.Parallel()
	s := server(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	ran := make(chan struct{})
	tool := oneturn.NewTool("note", func(ctx context.Context, _ map[string]any) (string, error) {
		defer close(ran)
		tool.Vars(ctx).Get("x")
		if err := js.DeleteKeyValue(ctx, "ONETURN_CONTEXT"); err != nil {
			return "", err
		}
		return "done", tool.Vars(ctx).Set("x", "y")
	}, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Effect: oneturn.Unsafe})
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{Tools: []oneturn.Tool{tool}, SoftStop: 500 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	c := client(t, s)
	publish(t, c, turn("t", map[string]any{"name": "Ada"}))
	<-ran
	start := time.Now()
	cancel()
	require.NoError(t, <-ended)
	require.Less(t, time.Since(start), 10*time.Second, "without the fix it takes the hard stop of 15 s too")
}
