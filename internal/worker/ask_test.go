package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// questioner is a worker configuration whose tool asks, and returns the answer.
func questioner(effect oneturn.Effect, ask func(ctx context.Context) (string, error)) oneturn.Config {
	tool := func(ctx context.Context, _ greeting) (greeted, error) {
		answer, err := ask(ctx)
		return greeted{Status: "success", Message: answer}, err
	}
	return oneturn.Config{Tools: []oneturn.Tool{
		oneturn.NewTool("greet", tool, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Effect: effect}),
	}}
}

func whoAreYou(ctx context.Context) (string, error) {
	return tool.Ask[string](ctx, tool.Question{Payload: map[string]any{"title": "Your name?"}})
}

// questions waits until so many questions of the chat are open.
func questions(t *testing.T, c *oneturn.Client, n int) []api.Question {
	t.Helper()
	var found []api.Question
	require.Eventually(t, func() bool {
		page, err := c.Questions(t.Context(), oneturn.QuestionFilter{App: "app", Chat: "chat 1"})
		if err != nil {
			return false
		}
		found = page.Questions
		return len(found) == n
	}, 20*time.Second, 5*time.Millisecond)
	return found
}

func reply(t *testing.T, c *oneturn.Client, id string, value any) {
	t.Helper()
	v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: "chat 1", ToolCallID: id}, Workflow: "Hello", Value: value})
	require.NoError(t, err)
	require.Equal(t, events.AnswerAccepted, v.Code, v.Message)
}

// unsettled returns how many messages of the inbound stream are not settled.
func unsettled(t *testing.T, s *oneturntest.Server) uint64 {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	return stream.CachedInfo().State.Msgs
}

func TestQuestionThatIsAnsweredSoonIsAnsweredInMemory(t *testing.T) {
	t.Parallel()
	s := server(t)
	var entered atomic.Int32
	config := questioner(oneturn.Replay, func(ctx context.Context) (string, error) {
		entered.Add(1)
		return whoAreYou(ctx)
	})
	config.Slots, config.ParkAfter = 1, time.Hour
	start(t, s, config)
	c := client(t, s)
	one, two := turn("t1", map[string]any{"name": "Ada"}), turn("t2", map[string]any{"name": "Ada"})
	publish(t, c, one, two)
	open := questions(t, c, 2) // though there is one slot
	require.Equal(t, uint64(2), unsettled(t, s))
	for _, q := range open {
		begin := time.Now()
		reply(t, c, q.ToolCallID, "Ada of "+q.ToolCallID)
		require.Less(t, time.Since(begin), 4*time.Second, "the live copy wakes it")
	}
	require.Equal(t, "Ada of t1/1", await(t, c, one.TurnID).Content)
	require.Equal(t, "Ada of t2/1", await(t, c, two.TurnID).Content)
	require.Equal(t, int32(2), entered.Load())
	requireDrained(t, s)
}

func TestParkedTurnResumesInAnotherWorker(t *testing.T) {
	t.Parallel()
	s := server(t)
	ask := func(ctx context.Context) (string, error) {
		name, err := whoAreYou(ctx)
		if err != nil {
			return "", err
		}
		sure, err := tool.Ask[bool](ctx, tool.Question{Payload: map[string]any{"title": "Sure?"}})
		if err != nil || !sure {
			return "", err
		}
		return tool.Info(ctx).Agent + " met " + name, nil
	}
	config := questioner(oneturn.Replay, ask)
	config.ParkImmediately = true
	w, err := oneturn.NewWorker(s.Connect(), config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	requireDrained(t, s)
	cancel()
	require.NoError(t, <-ended)

	start(t, s, questioner(oneturn.Replay, ask))
	open := questions(t, c, 1)
	require.Equal(t, "t1/1", open[0].ToolCallID)
	reply(t, c, "t1/1", "Ada")
	require.Equal(t, "t1/2", questions(t, c, 1)[0].ToolCallID)
	reply(t, c, "t1/2", true)
	require.Equal(t, "Greeter met Ada", await(t, c, one.TurnID).Content)
	requireDrained(t, s)
}

func TestWorkerThatDrainsParksWhatWaitsAndEndsImmediately(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := questioner(oneturn.Idempotent, whoAreYou)
	config.ParkAfter, config.SoftStop = time.Hour, time.Hour
	w, err := oneturn.NewWorker(s.Connect(), config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	questions(t, c, 1)
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "the worker waits for people")
	}
	requireDrained(t, s)
	start(t, s, questioner(oneturn.Idempotent, whoAreYou))
	reply(t, c, "t1/1", "Ada")
	require.Equal(t, "Ada", await(t, c, one.TurnID).Content)
}

func TestTimeToAnswerEndsByTheServersTimer(t *testing.T) {
	t.Parallel()
	for name, parkAfter := range map[string]time.Duration{"in memory": time.Hour, "parked": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			config := questioner(oneturn.Replay, func(ctx context.Context) (string, error) {
				_, err := tool.Ask[string](ctx, tool.Question{Timeout: time.Second})
				if errors.Is(err, tool.ErrExpired) {
					return "no answer", nil
				}
				return "", err
			})
			config.ParkAfter, config.ParkImmediately = max(parkAfter, 0), parkAfter < 0
			start(t, s, config)
			c := client(t, s)
			one := turn("t1", map[string]any{"name": "Ada"})
			publish(t, c, one)
			require.Equal(t, "no answer", await(t, c, one.TurnID).Content)
			requireDrained(t, s)
		})
	}
}

func TestCancelOfATurnThatWaitsForAPersonEndsIt(t *testing.T) {
	t.Parallel()
	for name, parkAfter := range map[string]time.Duration{"in memory": time.Hour, "parked": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			config := questioner(oneturn.Replay, whoAreYou)
			config.ParkAfter, config.ParkImmediately = max(parkAfter, 0), parkAfter < 0
			start(t, s, config)
			c := client(t, s)
			one := turn("t1", map[string]any{"name": "Ada"})
			publish(t, c, one)
			questions(t, c, 1)
			if parkAfter < 0 {
				requireDrained(t, s)
			}
			_, err := c.Cancel(t.Context(), &oneturn.Cancel{TurnID: one.TurnID, Workflow: "Hello"})
			require.NoError(t, err)
			require.Equal(t, events.CodeCancelled, await(t, c, one.TurnID).Code)
			questions(t, c, 0)
			requireDrained(t, s)
		})
	}
}

func TestManyQuestionsNeverKeepNewTurnsWaiting(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := questioner(oneturn.Unsafe, whoAreYou)
	config.Tools = append(config.Tools, oneturn.NewTool("quick", greet, oneturn.ToolOptions{Workflow: "Quick", Agent: "Greeter", Model: "Greeting"}))
	config.Slots, config.ParkAfter = 2, time.Hour
	start(t, s, config)
	c := client(t, s)
	const waiting = 200 // a hundred times the slots, and unsafe: they wait in memory
	ids := make([]oneturn.TurnID, waiting)
	for i := range ids {
		one := turn("w"+string(number(int64(i))), map[string]any{"name": "Ada"})
		publish(t, c, one)
		ids[i] = one.TurnID
	}
	quick := turn("quick", map[string]any{"name": "Ada"})
	quick.Workflow = "Quick"
	publish(t, c, quick)
	require.Equal(t, "Hello, Ada!", await(t, c, quick.TurnID).Content)
	for _, id := range ids {
		reply(t, c, id.Turn+"/1", "Ada")
	}
	for _, id := range ids {
		require.Equal(t, "Ada", await(t, c, id).Content)
	}
	requireDrained(t, s)
}
