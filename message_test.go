package oneturn_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// talking is a worker whose agents talk: the interview of the examples, and agents with other ends.
func talking(t *testing.T, s *oneturntest.Server) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "workflows")
	for name, manifest := range map[string]string{
		"Interview": interviewManifest,
		"Plain": `
agents: {Critic: {model: Plan}, Asker: {model: Plan}, Builder: {model: Plan}, Speaker: {}}
models: {Plan: {type: object, required: [title], properties: {title: {type: string}}}}
tools: [{name: ask, kind: go, agent: Asker, effect: replay}, {name: build, kind: go, agent: Builder, effect: replay}]
`,
		"SilentWithoutRules": `
agents: {Builder: {model: Plan}}
models: {Plan: {type: object, required: [title], properties: {title: {type: string}}}}
tools: [{name: build, kind: go, agent: Builder, effect: replay}]
compat: {silent: true}
`,
		"Silent": interviewManifest + "compat: {silent: true}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "oneturn.yaml"), []byte(manifest), 0o600))
	}
	start(t, s, oneturn.Config{Workflows: dir, Tools: []oneturn.Tool{
		oneturn.NewTool("build", func(_ context.Context, in post) (string, error) { return in.Title, nil }, oneturn.ToolOptions{}),
		oneturn.NewTool("ask", func(ctx context.Context, _ post) (bool, error) {
			return tool.Ask[bool](ctx, tool.Question{Component: "Approval"})
		}, oneturn.ToolOptions{}),
	}})
}

func written(id, workflow, agent string, content any) *oneturn.Message {
	return &oneturn.Message{MessageID: oneturn.MessageID{App: "app", Chat: "chat 1", Run: "r1", Message: id}, Workflow: workflow, Agent: agent, Content: content}
}

func TestWaitForAMessageEndsWithTheLastRecordThatFollows(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	do := func(m *oneturn.Message) *oneturn.MessageOutcome {
		t.Helper()
		got, err := c.DoMessage(ctx, m)
		require.NoError(t, err)
		require.Equal(t, m.Message, got.Text.MessageID)
		return got
	}
	text := do(written("m1", "Plain", "Speaker", "Hello."))
	require.Equal(t, "Hello.", text.Text.Content)
	require.Nil(t, text.Handoff)

	output := do(written("m2", "Plain", "Critic", post{"Shop"}))
	require.Equal(t, map[string]any{"title": "Shop"}, output.Output.Payload)
	require.Nil(t, output.Response)

	m := written("m3", "Interview", "Architect", `{"title":"Shop"}`)
	m.Turn = "turn-3"
	turned := do(m)
	require.Equal(t, "Shop", turned.Response.Payload)
	require.Equal(t, "turn-3", turned.Response.Turn)
	require.Equal(t, "user", *turned.Handoff.To)
	require.Equal(t, turned, do(m), "again, from what is stored")

	failed := do(written("m4", "Interview", "Architect", "No plan today."))
	require.Equal(t, events.CodeValidationFailed, failed.Response.Code)
	require.Equal(t, "user", *failed.Handoff.To)
}

func TestMessageOfAnIDThatIsUsedWithOtherContentIsAConflict(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	c := client(t, s)
	_, err := c.DoMessage(t.Context(), written("m1", "Plain", "Speaker", "one"))
	require.NoError(t, err)
	_, err = c.DoMessage(t.Context(), written("m1", "Plain", "Speaker", "two"))
	require.ErrorIs(t, err, oneturn.ErrMessageConflict)
	_, err = c.DoUserMessage(t.Context(), &oneturn.UserMessage{MessageID: written("m1", "", "", nil).MessageID, Workflow: "Plain", UserID: "ada", Content: "one"})
	require.ErrorIs(t, err, oneturn.ErrMessageConflict, "of a user, and not of the agent")
}

func TestUserInTheContextVariablesOfAMessageIsPartOfIt(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	m := written("m1", "Plain", "Speaker", "Hello.")
	m.ContextVariables = map[string]any{"user_id": "ada"}
	got, err := client(t, s).DoMessage(t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, "ada", got.Text.UserID)
}

func TestQuestionsOfTheTurnOfAMessageAreReportedWhileItWaits(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	asked := make(chan *api.Question, 1)
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{OnQuestion: func(q *api.Question) { asked <- q }})
	require.NoError(t, err)
	done := make(chan *oneturn.MessageOutcome, 1)
	go func() {
		outcome, err := c.DoMessage(t.Context(), written("m1", "Plain", "Asker", `{"title":"Shop"}`))
		if err != nil {
			t.Error(err)
		}
		done <- outcome
	}()
	q := <-asked
	result, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: q.Chat, Run: q.Run, ToolCallID: q.ToolCallID}, Value: true})
	require.NoError(t, err)
	require.Equal(t, events.AnswerAccepted, result.Code)
	require.Equal(t, true, (<-done).Response.Payload)
}

func TestWaitForAMessageWhoseTurnHasNoResponseEndsWithItsHandoff(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	got, err := client(t, s).DoMessage(t.Context(), written("m1", "Silent", "Architect", "No plan today."))
	require.NoError(t, err)
	require.Nil(t, got.Response)
	require.Equal(t, "user", *got.Handoff.To)
}

func TestWaitForAMessageEndsThoughNothingFollowsFromTheFailureOfItsTurn(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := client(t, s)
	m := written("m1", "SilentWithoutRules", "Builder", "No plan today.")
	for range 2 { // again, from what is stored
		got, err := c.DoMessage(ctx, m)
		require.NoError(t, err)
		require.Equal(t, "m1", got.Text.Turn)
		require.Nil(t, got.Response)
		require.Nil(t, got.Handoff)
	}
	got, err := c.DoMessage(ctx, written("m2", "SilentWithoutRules", "Builder", `{"title":"Shop"}`))
	require.NoError(t, err)
	require.Equal(t, "Shop", got.Response.Payload)
}

func TestWaitForAMessageReturnsNoResponseToOtherData(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for workflow, agent := range map[string]string{"Plain": "Builder", "Interview": "Architect"} {
		published := &oneturn.Turn{
			TurnID: oneturn.TurnID{App: "app", Chat: "chat 1", Run: "r1", Turn: workflow}, Workflow: workflow, Agent: agent, Model: "Plan", Data: post{"Shop"},
		}
		_, err := c.Do(ctx, published)
		require.NoError(t, err)
		m := written("other of "+workflow, workflow, agent, `{"title":"Bazaar"}`)
		m.Turn = workflow
		for range 2 { // again, from what is stored
			_, err = c.DoMessage(ctx, m)
			require.ErrorIs(t, err, oneturn.ErrConflict)
		}
		m = written("same of "+workflow, workflow, agent, `{"title":"Shop"}`)
		m.Turn = workflow
		got, err := c.DoMessage(ctx, m)
		require.NoError(t, err)
		require.Equal(t, "Shop", got.Response.Payload)
	}
}

func TestWaitForAMessageKnowsTheDataOfALargeTurn(t *testing.T) {
	t.Parallel()
	s := server(t)
	talking(t, s)
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	m := written("m1", "Plain", "Builder", post{strings.Repeat("x", 300<<10)})
	got, err := c.DoMessage(ctx, m)
	require.NoError(t, err)
	require.True(t, got.Response.Success)
	_, inBlob := events.BlobOf(got.Text.StructuredOutput)
	require.True(t, inBlob)
	m = written("m2", "Plain", "Builder", post{strings.Repeat("y", 300<<10)})
	m.Turn = "m1"
	_, err = c.DoMessage(ctx, m)
	require.ErrorIs(t, err, oneturn.ErrConflict)
}

func TestWaitForAMessageStatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := server(t)
	c := client(t, s)
	wait := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := c.AwaitMessage(ctx, written("m1", "Plain", "Speaker", "x").MessageID)
		return err
	}
	require.ErrorIs(t, wait(), oneturn.ErrNoWorker)
	talking(t, s)
	require.Eventually(t, func() bool { return !errors.Is(wait(), oneturn.ErrNoWorker) }, 10*time.Second, time.Millisecond)
	err := wait()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no worker has stored the message")
}

func TestMessageThatCannotBeUsedIsNotPublished(t *testing.T) {
	t.Parallel()
	s := server(t)
	c := client(t, s)
	for want, m := range map[string]*oneturn.Message{
		"set MessageID.Chat":                 {Workflow: "W", Agent: "A", Content: "x"},
		"set MessageID.Message":              {MessageID: oneturn.MessageID{Chat: "c"}, Workflow: "W", Agent: "A", Content: "x"},
		"set Workflow":                       {MessageID: oneturn.MessageID{Chat: "c", Message: "m"}, Agent: "A", Content: "x"},
		"set Agent":                          {MessageID: oneturn.MessageID{Chat: "c", Message: "m"}, Workflow: "W", Content: "x"},
		"with PublishUserMessage":            written("m", "W", events.AgentUser, "x"),
		"no JSON form":                       written("m", "W", "A", func() {}),
		"content is a number":                written("m", "W", "A", 5),
		"content is null or absent":          written("m", "W", "A", nil),
		"the event has":                      written("m", "W", "A", strings.Repeat("x", 2<<20)),
		"control character":                  written("m\x00", "W", "A", "x"),
		"its context variables have no JSON": {MessageID: oneturn.MessageID{Chat: "c", Message: "m"}, Workflow: "W", Agent: "A", Content: "x", ContextVariables: map[string]any{"f": func() {}}},
	} {
		_, err := c.PublishMessage(t.Context(), m)
		require.ErrorContains(t, err, want)
		_, err = c.DoMessage(t.Context(), m)
		require.ErrorContains(t, err, want)
	}
	_, err := c.PublishUserMessage(t.Context(), &oneturn.UserMessage{MessageID: oneturn.MessageID{Chat: "c"}})
	require.ErrorContains(t, err, "set MessageID.Message")
	_, err = c.AwaitMessage(t.Context(), oneturn.MessageID{Chat: "c"})
	require.ErrorContains(t, err, "set MessageID.Message")
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "ONETURN_IN")
	require.NoError(t, err)
	require.Zero(t, stream.CachedInfo().State.Msgs)
}

func TestPublishedMessageHasTheHeaderAndSubjectOfItsKind(t *testing.T) {
	t.Parallel()
	s := server(t)
	nc := s.Connect()
	sub, err := nc.SubscribeSync("oneturn.in.>")
	require.NoError(t, err)
	c, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	m := written("m1", "W", "A", map[string]any{"a": 1})
	m.Depth = 2
	var ids []string
	for i := range 2 {
		receipt, err := c.PublishMessage(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, i > 0, receipt.Duplicate)
		got, err := sub.NextMsg(5 * time.Second)
		require.NoError(t, err)
		require.Equal(t, "oneturn.in.default.agent_message.app.W.chat=201", got.Subject)
		require.Equal(t, "2", got.Header.Get("Oneturn-Depth"))
		ids = append(ids, got.Header.Get(nats.MsgIdHdr))
	}
	require.Equal(t, ids[0], ids[1])
	other := written("m1", "W", "A", "other")
	receipt, err := c.PublishMessage(t.Context(), other)
	require.NoError(t, err)
	require.False(t, receipt.Duplicate, "other content is not dropped by the server")
	_, err = sub.NextMsg(5 * time.Second)
	require.NoError(t, err)
	_, err = c.PublishUserMessage(t.Context(), &oneturn.UserMessage{MessageID: m.MessageID, Workflow: "W", UserID: "ada", Content: "x"})
	require.NoError(t, err)
	got, err := sub.NextMsg(5 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "oneturn.in.default.user_message.app.W.chat=201", got.Subject)
	e, err := events.DecodeMessage(got.Data)
	require.NoError(t, err)
	require.True(t, e.User)
}

func TestWaitForAMessageThatIsCorrectedEndsWithTheLastCorrection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ last, handoffs string }{
		{`{"title":"Shop"}`, ""}, {"Still no plan.", ""}, {`{"title":"Shop"}`, "handoffs: [{from: Architect, to: user}]\n"},
	} {
		var asked atomic.Int64
		llm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			text := "No plan."
			if asked.Add(1) > 1 {
				text = c.last
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{
				"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text},
			}}})
		}))
		t.Cleanup(llm.Close)
		dir := filepath.Join(t.TempDir(), "workflows", "W")
		require.NoError(t, os.MkdirAll(dir, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), []byte(c.handoffs+`
agents: {Architect: {model: Plan, completion: editor, corrections: 2}}
models: {Plan: {type: object, required: [title], properties: {title: {type: string}}}}
tools:
- {name: build, kind: go, agent: Architect, effect: idempotent}
- {name: "agent:editor", auto: false, completion: {url: "`+llm.URL+`", model: small, allow_http: true, allow_private: [127.0.0.0/8]}}
`), 0o600))
		s := server(t)
		start(t, s, oneturn.Config{Workflows: filepath.Dir(dir), Tools: []oneturn.Tool{
			oneturn.NewTool("build", func(_ context.Context, in post) (string, error) { return in.Title, nil }, oneturn.ToolOptions{}),
		}})
		client := client(t, s)
		m := written("m1", "W", "Architect", "No plan today.")
		for range 2 { // again, from what is stored
			got, err := client.DoMessage(t.Context(), m)
			require.NoError(t, err)
			require.Equal(t, "m1~2", got.Response.Turn)
			require.False(t, got.Response.Correcting)
			require.Equal(t, c.last == `{"title":"Shop"}`, got.Response.Success)
			require.Equal(t, c.handoffs != "", got.Handoff != nil)
		}
		first, err := client.Await(t.Context(), oneturn.TurnID{App: m.App, Chat: m.Chat, Run: m.Run, Turn: "m1"})
		require.NoError(t, err)
		require.True(t, first.Correcting)
	}
}
