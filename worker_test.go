package oneturn_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/inbox"
	"github.com/oneturn/oneturn/tools"
	"github.com/oneturn/oneturn/turntest"
)

type greeting struct {
	Name string `json:"name"`
}

type greeted struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func greet(_ context.Context, in greeting) (greeted, error) {
	if in.Name == "" {
		return greeted{}, errors.New("nobody to greet")
	}
	return greeted{"success", "Hello, " + in.Name + "!"}, nil
}

// start runs a worker until the test ends.
func start(t *testing.T, s *turntest.Server, c oneturn.Config) *oneturn.Worker {
	t.Helper()
	w, err := oneturn.NewWorker(s.Connect(), c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return w
}

func client(t *testing.T, s *turntest.Server) *oneturn.Client {
	t.Helper()
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	return c
}

func turn(key string, data any) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: "app", Chat: "chat 1", Turn: key},
		Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Data: data,
	}
}

func server(t *testing.T) *turntest.Server {
	t.Helper()
	s := turntest.NewServer(t)
	s.Provision()
	return s
}

func await(t *testing.T, c *oneturn.Client, id oneturn.TurnID) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := c.Await(ctx, id)
	require.NoError(t, err)
	return r
}

func greeter() oneturn.Config {
	return oneturn.Config{Tools: []oneturn.Tool{
		oneturn.NewTool("greet", greet, oneturn.For("Hello", "Greeter", "Greeting")),
	}}
}

func publish(t *testing.T, c *oneturn.Client, turns ...*oneturn.Turn) {
	t.Helper()
	for _, one := range turns {
		_, err := c.Publish(t.Context(), one)
		require.NoError(t, err)
	}
}

func TestTurnRunsItsGoToolAndEndsInItsResponse(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one, one, one)
	r := await(t, c, one.TurnID)
	require.True(t, r.Success)
	require.Equal(t, events.StatusOK, r.Status)
	require.Equal(t, "Hello, Ada!", r.Content)
	require.Equal(t, "greet", r.ToolName)
	require.Equal(t, []string{"t1", "t1", "t1"}, []string{r.ToolCallID, r.CallID, r.Corr})
	require.Equal(t, map[string]any{"status": "success", "message": "Hello, Ada!"}, r.Payload)
}

func TestDataThatDoesNotFitIsAnsweredWithFeedbackForTheModel(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	bad := turn("t1", map[string]any{"nam": "SECRET"})
	publish(t, c, bad)
	r := await(t, c, bad.TurnID)
	require.False(t, r.Success)
	require.Equal(t, events.CodeValidationFailed, r.Code)
	payload := object(t, r.Payload)
	require.Contains(t, payload["feedback"], "name")
	require.NotContains(t, payload["feedback"], "SECRET")
	require.Len(t, payload["errors"], 1)
}

func TestEqualKeysOfOtherTenantsChatsAndRunsAreOtherTurns(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	ids := []oneturn.TurnID{
		{App: "a", Chat: "c", Turn: "t"},
		{App: "b", Chat: "c", Turn: "t"},
		{App: "a", Chat: "d", Turn: "t"},
		{App: "a", Chat: "c", Run: "r1", Turn: "t"},
		{App: "a", Chat: "c", Run: "r2", Turn: "t"},
	}
	calls := map[string]bool{}
	for _, id := range ids {
		one := turn("", map[string]any{"name": "x"})
		one.TurnID = id
		publish(t, c, one)
		r := await(t, c, id)
		require.True(t, r.Success)
		require.Equal(t, []string{id.App, id.Chat, id.Run}, []string{r.AppID, r.ChatID, r.RunID})
		calls[id.App+id.Chat+r.CallID] = true
	}
	require.Len(t, calls, len(ids))
}

func TestOldEventsAreAnsweredAndNotRun(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := greeter()
	config.MaxEventAge = time.Nanosecond
	start(t, s, config)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	require.Equal(t, events.CodeTooOld, await(t, c, one.TurnID).Code)
}

func TestUnknownWorkflowWaitsForAWorkerThatKnowsItThenIsAnswered(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := greeter()
	config.BindingGrace = 6 * time.Second
	start(t, s, config)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	one.Workflow = "Later"
	publish(t, c, one)
	two := turn("t2", map[string]any{"name": "Ada"})
	two.Workflow = "Never"
	publish(t, c, two)
	start(t, s, oneturn.Config{
		Tools:        []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.For("Later", "Greeter", "Greeting"))},
		BindingGrace: 6 * time.Second,
	})
	require.True(t, await(t, c, one.TurnID).Success)
	require.Equal(t, events.CodeNoBinding, await(t, c, two.TurnID).Code)
}

func TestLargeResultIsABlobThatTheResponseNames(t *testing.T) {
	t.Parallel()
	s := server(t)
	text := strings.Repeat("x", handlers.InlineLimit+1)
	big := oneturn.NewTool("big", func(context.Context, greeting) (string, error) { return text, nil },
		oneturn.For("Hello", "Greeter", "Greeting"))
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{big}})
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	r := await(t, c, one.TurnID)
	require.True(t, r.Success)
	name, ok := object(t, r.Payload)["$blob"].(string)
	require.True(t, ok)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	store, err := js.ObjectStore(t.Context(), "ONETURN_BLOBS")
	require.NoError(t, err)
	data, err := store.GetBytes(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, `"`+text+`"`, string(data))
}

func TestContextChangesReachTheNextTurnThatBringsNoSnapshot(t *testing.T) {
	t.Parallel()
	s := server(t)
	count := oneturn.NewTool("count", func(ctx context.Context, _ greeting) (string, error) {
		vars := tools.Vars(ctx)
		n, _ := vars.Get("count")
		vars.Remove("gone")
		text := fmt.Sprintf("%vx", n)
		return text, vars.Set("count", text)
	}, oneturn.For("Hello", "Greeter", "Greeting"))
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{count}})
	c := client(t, s)
	for i, want := range []string{"seedx", "seedxx", "seedxxx"} {
		one := turn(strconv.Itoa(i), map[string]any{"name": "Ada"})
		if i == 0 {
			one.ContextVariables = map[string]any{"count": "seed", "gone": true}
		}
		publish(t, c, one)
		r := await(t, c, one.TurnID)
		require.Equal(t, want, r.Payload)
		if i == 0 {
			require.Equal(t, []string{"count", "gone"}, r.ContextKeys)
		} else {
			require.Equal(t, []string{"count"}, r.ContextKeys)
		}
	}
}

func TestKeyReuseWithOtherDataIsNeverRunAndBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c, nc := client(t, s), s.Connect()
	dead, err := nc.SubscribeSync("oneturn.dead.>")
	require.NoError(t, err)
	live, err := nc.SubscribeSync("oneturn.live.app.>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	publish(t, c, turn("t1", map[string]any{"name": "Ada"}))
	require.Equal(t, "Hello, Ada!", await(t, c, turn("t1", nil).TurnID).Content)
	publish(t, c, turn("t1", map[string]any{"name": "Bob"}))
	m, err := dead.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "turn_conflict", m.Header.Get(handlers.HeaderReason))
	require.Contains(t, string(m.Data), "Bob")
	m, err = live.NextMsg(10 * time.Second)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"chat.turn_conflict"`)
	require.Equal(t, "Hello, Ada!", await(t, c, turn("t1", nil).TurnID).Content)
}

// TestWhatCannotBeHandledIsADeadLetterWithItsBytes: nothing is dropped silently.
func TestWhatCannotBeHandledIsADeadLetterWithItsBytes(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	dead, err := js.OrderedConsumer(t.Context(), "ONETURN_DEAD", jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	good := `{"kind":"structured_output_ready","agent":"Greeter","model_name":"Greeting","structured_data":{"name":"x"},` +
		`"auto_tool_mode":true,"turn_idempotency_key":"t","context":{"app_id":"app","chat_id":"chat","workflow_name":"Hello"}}`
	const subject = "oneturn.in.default.structured_output_ready.app.Hello.chat"
	for _, c := range []struct{ name, subject, body, reason string }{
		{"not JSON", subject, "nope", "undecodable"},
		{"empty", subject, "", "undecodable"},
		{"not an object", subject, "[]", "undecodable"},
		{"duplicate key", subject, `{"kind":"a","kind":"b"}`, "undecodable"},
		{"unknown kind", subject, `{"kind":"surprise"}`, "unknown_kind"},
		{"no chat", subject, strings.Replace(good, `"chat_id":"chat",`, "", 1), "missing_field"},
		{"other tenant's subject", strings.Replace(subject, ".app.", ".evil.", 1), good, "subject_mismatch"},
		{"other chat's subject", strings.Replace(subject, ".chat", ".other", 1), good, "subject_mismatch"},
		{"other kind's subject", strings.Replace(subject, "structured_output_ready", "cancel", 1), good, "subject_mismatch"},
		{"short subject", "oneturn.in.default.x", good, "subject_mismatch"},
	} {
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: c.subject, Data: []byte(c.body), Header: nats.Header{"X-Mine": {"kept"}}})
		require.NoError(t, err, c.name)
		m, err := dead.Next(jetstream.FetchMaxWait(10 * time.Second))
		require.NoError(t, err, c.name)
		require.Equal(t, c.reason, m.Headers().Get(handlers.HeaderReason), c.name)
		require.Equal(t, c.body, string(m.Data()), c.name)
		require.Equal(t, c.subject, m.Headers().Get(handlers.HeaderSubject), c.name)
		require.Equal(t, "kept", m.Headers().Get("X-Mine"), c.name)
		require.NotEmpty(t, m.Headers().Get(handlers.HeaderError), c.name)
	}
}

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

func TestWaitSaysWhenNoWorkerIsThere(t *testing.T) {
	t.Parallel()
	s := server(t)
	told := make(chan oneturn.TurnID, 1)
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{
		OnNoWorker: func(id oneturn.TurnID) { told <- id }, NoWorkerAfter: 300 * time.Millisecond,
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
	require.Equal(t, one.TurnID, <-told)
	start(t, s, greeter())
	r := <-ended
	require.NotNil(t, r)
	require.True(t, r.Success)
}

func TestWorkerEndsWithAnErrorWhenItsConsumerIsDeletedOrItsConnectionClosed(t *testing.T) {
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

func TestClientTakesOrdinaryGoData(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for key, data := range map[string]any{
		"struct": greeting{"Ada"}, "map": map[string]string{"name": "Ada"}, "mixed": map[string]any{"name": "Ada", "n": 1, "f": []float64{1.5}},
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

// TestWorkersOfDifferentToolsShareAPool: a turn that one worker does not know is soon with
// the other.
func TestWorkersOfDifferentToolsShareAPool(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, greeter())
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.For("Other", "Greeter", "Greeting"))}})
	c := client(t, s)
	for i := range 10 {
		one := turn(strconv.Itoa(i), map[string]any{"name": "Ada"})
		if i%2 == 0 {
			one.Workflow = "Other"
		}
		publish(t, c, one)
		require.True(t, await(t, c, one.TurnID).Success)
	}
}
