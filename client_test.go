package oneturn_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestClientTakesOrdinaryGoData(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for key, data := range map[string]any{
		"struct": greeting{Name: "Ada"}, "map": map[string]string{"name": "Ada"}, "mixed": map[string]any{"name": "Ada", "n": 1, "f": []float64{1.5}},
	} {
		one := turn(key, data)
		one.ContextVariables = map[string]any{"n": 1}
		r, err := c.Do(ctx, one)
		require.NoError(t, err, key)
		require.Equal(t, "Hello, Ada!", r.Content, key)
	}
	_, err := c.Publish(ctx, turn("chan", make(chan int)))
	require.ErrorContains(t, err, "no JSON form")
	_, err = oneturn.NewClient(nil, oneturn.ClientOptions{})
	require.Error(t, err)
}

// F16: see docs/faults.md.
func TestWaitEndsThoughEveryLiveCopyIsLost(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	warm := turn("warm", map[string]any{"name": "Ada"})
	publish(t, c, warm)
	await(t, c, warm.TurnID)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_ONETURN_TURNS")
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.RePublish = nil
	_, err = js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	require.True(t, await(t, c, one.TurnID).Success)
}

func TestWaitReportsThatNoWorkerReplies(t *testing.T) {
	t.Parallel()
	s := server(t)
	reported := make(chan oneturn.TurnID, 1)
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{
		OnNoWorker: func(id oneturn.TurnID) { reported <- id }, NoWorkerAfter: 300 * time.Millisecond,
	})
	require.NoError(t, err)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	ended := make(chan *oneturn.Response, 1)
	go func() {
		r, err := c.Await(context.WithoutCancel(t.Context()), one.TurnID)
		if err == nil {
			ended <- r
		}
		close(ended)
	}()
	require.Equal(t, one.TurnID, <-reported)
	start(t, s, greeter())
	r := <-ended
	require.NotNil(t, r)
	require.True(t, r.Success)
}

// Workers of the release before serve the verb under its former name.
func TestQuestionsAreReadFromWorkersOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	_, err := nc.Subscribe("oneturn.api.default.waits", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"waits":[{"tool_call_id":"t1/1"}],"next":7}`)) // without a reply the request below fails
	})
	require.NoError(t, err)
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	page, err := client.Questions(t.Context(), oneturn.QuestionFilter{Chat: "chat"})
	require.NoError(t, err)
	require.Equal(t, &api.Questions{Questions: []api.Question{{ToolCallID: "t1/1"}}, Next: 7}, page)
}

func TestRequestOfADeadWorkerFailsWithTheHintToRetry(t *testing.T) {
	t.Parallel()
	nc := oneturntest.NewServer(t).Connect()
	_, err := nc.Subscribe("oneturn.api.default.questions", func(*nats.Msg) {}) // it dies with the request
	require.NoError(t, err)
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = client.Questions(ctx, oneturn.QuestionFilter{Chat: "chat"})
	require.ErrorContains(t, err, "no worker has replied in time, try again")
}

func TestWaitReportsThatWorkersReplyAndNoneClaims(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	reported := make(chan oneturn.TurnID, 10)
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{
		OnUnclaimed: func(id oneturn.TurnID) { reported <- id }, NoWorkerAfter: 300 * time.Millisecond,
	})
	require.NoError(t, err)
	known := turn("known", map[string]any{"name": "Ada"})
	publish(t, c, known)
	await(t, c, known.TurnID)
	unknown := turn("unknown", map[string]any{"name": "Ada"})
	unknown.Workflow = "Helo"
	publish(t, c, unknown)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := c.Await(ctx, unknown.TurnID)
		ended <- err
	}()
	require.Equal(t, unknown.TurnID, <-reported)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Empty(t, reported, "once a wait, and not for a turn that was claimed")
}

func TestTurnThatWentToAWrongPoolIsNotADuplicateInTheRightOne(t *testing.T) {
	t.Parallel()
	s := server(t)
	for _, pool := range []string{"gpu", "default"} {
		c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{Pool: pool})
		require.NoError(t, err)
		first, err := c.Publish(t.Context(), turn("t", map[string]any{"name": "Ada"}))
		require.NoError(t, err)
		require.False(t, first.Duplicate, pool)
		again, err := c.Publish(t.Context(), turn("t", map[string]any{"name": "Ada"}))
		require.NoError(t, err)
		require.True(t, again.Duplicate, pool)
	}
}
