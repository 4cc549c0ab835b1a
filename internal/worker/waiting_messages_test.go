package worker_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// places has the workers of the pool hold so many messages together at most. It returns how many of
// them are taken.
func places(t *testing.T, s *oneturntest.Server, n int) (taken func() int) {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	config := consumer.CachedInfo().Config
	config.MaxAckPending = n
	consumer, err = js.UpdateConsumer(t.Context(), "ONETURN_IN", config)
	require.NoError(t, err)
	return func() int {
		info, err := consumer.Info(t.Context())
		require.NoError(t, err)
		return info.NumAckPending
	}
}

// unknownTurns are turns of a workflow that no worker knows.
func unknownTurns(n int) []*oneturn.Turn {
	all := make([]*oneturn.Turn, n)
	for i := range all {
		all[i] = turn("unknown "+strconv.Itoa(i), map[string]any{"name": "Eve"})
		all[i].App, all[i].Workflow = "evil", "Nowhere"
	}
	return all
}

// ended counts the turns that have a response.
func ended(t *testing.T, s *oneturntest.Server, app string) int {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	journal, err := js.Stream(t.Context(), "KV_ONETURN_TURNS")
	require.NoError(t, err)
	info, err := journal.Info(t.Context(), jetstream.WithSubjectFilter("$KV.ONETURN_TURNS.e."+app+".*.*.*.tool_response"))
	require.NoError(t, err)
	return len(info.State.Subjects)
}

// TestTurnsOfAnUnknownWorkflowHoldUpNoOtherTenant: there are three times as many as places, and they
// wait for an hour. The turns of another tenant end all the same.
func TestTurnsOfAnUnknownWorkflowHoldUpNoOtherTenant(t *testing.T) {
	t.Parallel()
	s := server(t)
	taken := places(t, s, 128)
	config := greeter()
	config.BindingGrace, config.Slots = time.Hour, 8
	start(t, s, config)
	start(t, s, config)
	c := client(t, s)
	publish(t, c, unknownTurns(400)...)
	for i := range 20 {
		hello := turn(strconv.Itoa(i), map[string]any{"name": "Ada"})
		publish(t, c, hello)
		require.True(t, await(t, c, hello.TurnID).Success)
	}
	require.Zero(t, ended(t, s, "evil"), "they still wait")
	require.Less(t, taken(), 128/4)
}

// TestDeferredTurnRunsWhenAWorkerKnowsItsWorkflow: once each, however the others end.
func TestDeferredTurnRunsWhenAWorkerKnowsItsWorkflow(t *testing.T) {
	t.Parallel()
	const n = 40
	s := server(t)
	places(t, s, 64)
	config := greeter()
	config.BindingGrace = 3 * time.Second
	start(t, s, config)
	c := client(t, s)
	publish(t, c, unknownTurns(n)...)
	hello := turn("hello", map[string]any{"name": "Ada"})
	publish(t, c, hello)
	require.True(t, await(t, c, hello.TurnID).Success)
	ran := make(chan string, 2*n)
	start(t, s, oneturn.Config{BindingGrace: time.Hour, Tools: []oneturn.Tool{oneturn.NewTool("late", func(ctx context.Context, _ greeting) (string, error) {
		ran <- tool.Info(ctx).Turn
		return "late", nil
	}, oneturn.ToolOptions{Workflow: "Nowhere", Agent: "Greeter", Model: "Greeting"})}})
	runs := 0
	for _, other := range unknownTurns(n) {
		switch r := await(t, c, other.TurnID); {
		case r.Success:
			runs++
		default:
			require.Equal(t, "no_binding", string(r.Code))
		}
	}
	require.Len(t, ran, runs)
	require.Positive(t, runs, "deferred messages are delivered again")
	requireDrained(t, s)
}

// F29: TestQuestionsOfARetiredWorkflowDelayNoOtherMessages: their time is over, and no worker has their
// workflow. Other turns end, and the questions expire when a worker has it again.
func TestQuestionsOfARetiredWorkflowDelayNoOtherMessages(t *testing.T) {
	t.Parallel()
	const n, most = 40, 20
	s := server(t)
	taken := places(t, s, most)
	config, _ := approver(oneturn.Config{})
	stop := serve(t, s, config)
	c := client(t, s)
	for i := range n {
		one := approval(4 * time.Second)
		one.Turn = strconv.Itoa(i)
		publish(t, c, one)
	}
	require.Eventually(t, func() bool { return open(t, c) == n }, 20*time.Second, 20*time.Millisecond)
	requireDrained(t, s)
	stop() // the workflow is retired
	other := greeter()
	other.NoBindingGrace = true
	start(t, s, other)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	timers, err := js.Stream(t.Context(), "ONETURN_TIMERS")
	require.NoError(t, err)
	require.Eventually(t, func() bool { // they are due, and deferred
		info, err := timers.Info(t.Context(), jetstream.WithSubjectFilter("oneturn.timer.in.default.expire.>"))
		return err == nil && len(info.State.Subjects) > n/2
	}, 30*time.Second, 20*time.Millisecond)
	for i := range 20 {
		hello := turn("hello "+strconv.Itoa(i), map[string]any{"name": "Ada"})
		publish(t, c, hello)
		require.True(t, await(t, c, hello.TurnID).Success)
	}
	require.Less(t, taken(), most)
	require.Equal(t, n, open(t, c), "a worker that does not have their workflow decides nothing")
	start(t, s, config)
	require.Eventually(t, func() bool { return open(t, c) == 0 }, 60*time.Second, 50*time.Millisecond)
}

// open counts the open questions of the chat of an approval.
func open(t *testing.T, c *oneturn.Client) (n int) {
	t.Helper()
	for from := uint64(0); ; {
		page, err := c.Questions(t.Context(), oneturn.QuestionFilter{App: "acme", Chat: "chat", From: from})
		if err != nil {
			return -1 // no worker answers now
		}
		n += len(page.Questions)
		if from = page.Next; from == 0 {
			return n
		}
	}
}

// serve runs a worker until it is stopped.
func serve(t *testing.T, s *oneturntest.Server, c oneturn.Config) (stop func()) {
	t.Helper()
	w, err := oneturn.NewWorker(s.Connect(), c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var stopped bool
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}
