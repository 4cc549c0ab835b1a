package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/tool"
)

// untilStopped runs a worker until stop is called.
func untilStopped(t *testing.T, w *oneturn.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(cancel)
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func TestAnswerIsKeptForAWorkerThatKnowsTheWorkflowWhileOthersRun(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := questioner(oneturn.Replay, whoAreYou)
	config.ParkImmediately = true
	knowing, err := oneturn.NewWorker(s.Connect(), config)
	require.NoError(t, err)
	stop := untilStopped(t, knowing)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	require.Equal(t, "t1/1", questions(t, c, 1)[0].ToolCallID)
	requireDrained(t, s)
	stop()

	other := oneturn.NewTool("other", func(context.Context, struct{}) (string, error) { return "", tool.ErrParked }, oneturn.ToolOptions{Workflow: "Other", Agent: "Other", Model: "Other"})
	ignorant, err := oneturn.NewWorker(s.Connect(), oneturn.Config{Tools: []oneturn.Tool{other}, NoBindingGrace: true})
	require.NoError(t, err)
	stop = untilStopped(t, ignorant)
	asker, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{AnswerWait: 2 * time.Second})
	require.NoError(t, err)
	_, err = asker.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: one.App, Chat: one.Chat, ToolCallID: "t1/1"}, Value: "Ada", Workflow: one.Workflow})
	require.ErrorIs(t, err, oneturn.ErrUndecided)
	require.Len(t, questions(t, c, 1), 1)
	stop()

	start(t, s, config)
	require.True(t, await(t, c, one.TurnID).Success)
	requireDrained(t, s)
}
