package oneturn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// decider gives verdicts as a worker does: those that the test scripts, by the value.
func (a *asker) decider(verdicts map[string]events.VerdictCode) (seen chan *events.ToolCallResponse) {
	a.Helper()
	seen = make(chan *events.ToolCallResponse, 16)
	_, err := a.nc.Subscribe(a.space.InKind("default", events.KindToolCallResponse), func(m *nats.Msg) {
		r, err := events.DecodeAnswer(m.Data)
		if err != nil {
			return
		}
		seen <- r
		said, _ := r.Value.(string)
		code, ok := verdicts[said]
		if !ok {
			return
		}
		v := events.NewVerdict(code, r.ToolCallID, "as scripted")
		if body, err := events.EncodeVerdict(&v); err == nil {
			_ = a.nc.Publish(m.Header.Get(subjects.HeaderReply), body)
		}
	})
	require.NoError(a, err)
	require.NoError(a, a.nc.Flush())
	return seen
}

// soon is the context of a test that must not hang.
func (a *asker) soon() context.Context {
	ctx, cancel := context.WithTimeout(a.Context(), 20*time.Second)
	a.Cleanup(cancel)
	return ctx
}

func TestClientPublishesAnAnswerAndReturnsItsVerdict(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	seen := a.decider(map[string]events.VerdictCode{"yes": events.VerdictAccepted, "no": events.VerdictAnswered})
	id := turnOf("chat 1", "r", "t1")
	asked := a.ask(id, "1")
	question := oneturn.AnswerRequest{App: "app", Chat: "chat 1", ToolCallID: asked, UserID: "ada"}
	named := question
	named.Workflow, named.Run = "Flow", "r"
	for _, q := range []oneturn.AnswerRequest{question, named} { // the first is looked up
		q.Value = "yes"
		v, err := a.client.Answer(a.soon(), q)
		require.NoError(t, err)
		require.True(t, v.OK())
		require.Equal(t, oneturn.Verdict{Status: 200, Code: events.VerdictAccepted, Message: "as scripted", ToolCallID: asked}, v)
		require.Equal(t, &events.ToolCallResponse{
			TurnID: oneturn.TurnID{App: "app", Chat: "chat 1", Run: "r"}, Workflow: "Flow", ToolCallID: asked, UserID: "ada", Value: "yes",
		}, <-seen)
		q.Value = "no"
		v, err = a.client.Answer(a.soon(), q)
		require.NoError(t, err)
		require.Equal(t, 409, v.Status)
		require.False(t, v.OK())
		<-seen
	}
	named.Subject, named.Value = a.space.In("special", events.KindToolCallResponse, "app", "Flow", "chat 1"), "yes"
	special, err := a.nc.SubscribeSync(named.Subject)
	require.NoError(t, err)
	require.NoError(t, a.nc.Flush())
	brief, err := oneturn.NewClient(a.nc, oneturn.ClientOptions{AnswerWait: 200 * time.Millisecond})
	require.NoError(t, err)
	_, err = brief.Answer(a.soon(), named)
	require.ErrorIs(t, err, oneturn.ErrUndecided)
	m, err := special.NextMsgWithContext(a.soon())
	require.NoError(t, err, "the subject of the event is the one to use")
	require.True(t, a.space.MayAnswer(m.Header.Get(subjects.HeaderReply)))
}

func TestAnswerWithoutAVerdictSaysThatItIsPublished(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	c, err := oneturn.NewClient(a.server.Connect(), oneturn.ClientOptions{AnswerWait: 200 * time.Millisecond})
	require.NoError(t, err)
	asked := a.ask(turnOf("c", "", "t1"), "1")
	v, err := c.Answer(t.Context(), oneturn.AnswerRequest{App: "app", Chat: "c", ToolCallID: asked, Value: map[string]any{"status": "approved"}, Workflow: "Flow"})
	require.ErrorIs(t, err, oneturn.ErrUndecided)
	require.ErrorContains(t, err, "message 1 of ONETURN_IN")
	require.Equal(t, oneturn.Verdict{ToolCallID: asked}, v)
}

func TestAnswerThatGoesNowhereIsToldAtOnce(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	q := oneturn.AnswerRequest{App: "app", Chat: "c", ToolCallID: "t1/1", Value: 1}
	v, err := a.client.Answer(a.soon(), q)
	require.NoError(t, err)
	require.Equal(t, 404, v.Status)
	q.Value = func() {}
	_, err = a.client.Answer(a.soon(), q)
	require.ErrorContains(t, err, "no JSON form")
	q.Value, q.Workflow = strings.Repeat("x", events.MaxAnswerBytes), "Flow"
	_, err = a.client.Answer(a.soon(), q)
	require.ErrorIs(t, err, events.ErrTooLarge)
	q.Value = 1
	for _, subject := range []string{
		"$KV.ONETURN_TURNS.e.app.c.0-t1.0.ack.1", "oneturn.in.default.cancel.app.Flow.c", a.space.In("default", events.KindToolCallResponse, "app", "Flow", "d"),
		a.space.In("default", events.KindToolCallResponse, "eve", "Flow", "c"),
	} {
		q.Subject = subject
		_, err = a.client.Answer(a.soon(), q)
		require.ErrorContains(t, err, "it is no subject for answers in this chat", subject)
	}
	c, err := oneturn.NewClient(a.server.Connect(nats.CustomInboxPrefix("replies")), oneturn.ClientOptions{})
	require.NoError(t, err)
	q.Subject = ""
	_, err = c.Answer(a.soon(), q)
	require.ErrorContains(t, err, "choose another inbox prefix")
}

// post sends a request to the verb answer.
func (a *asker) post(app, body string) *nats.Msg {
	a.Helper()
	m, err := a.nc.Request(a.space.API(app, oneturn.VerbAnswer), []byte(body), 20*time.Second)
	require.NoError(a, err)
	return m
}

func TestRequestAPITakesAnswers(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	seen := a.decider(map[string]events.VerdictCode{"yes": events.VerdictAccepted, "bad": events.VerdictInvalid})
	asked := a.ask(turnOf("c", "r", "t1"), "1")
	verdict := func(app, body string) *events.Verdict {
		m := a.post(app, body)
		require.Empty(t, m.Header)
		v, err := events.DecodeVerdict(m.Data)
		require.NoError(t, err, string(m.Data))
		return v
	}
	v := verdict("app", `{"chat_id":"c","tool_call_id":"`+asked+`","user_id":"ada","value":"yes"}`)
	require.True(t, v.OK())
	require.Equal(t, &events.ToolCallResponse{
		TurnID: oneturn.TurnID{App: "app", Chat: "c", Run: "r", Turn: "t1"}, Workflow: "Flow", ToolCallID: asked, UserID: "ada", Value: "yes",
	}, <-seen)
	require.Equal(t, 422, verdict("app", `{"chat_id":"c","tool_call_id":"`+asked+`","value":"bad"}`).Status)
	require.Empty(t, (<-seen).UserID, "nobody is made up")
	require.Equal(t, 404, verdict("eve", `{"chat_id":"c","tool_call_id":"`+asked+`","user_id":"ada","value":"yes"}`).Status, "the tenant is that of the subject")
	require.Equal(t, 404, verdict("app", `{"chat_id":"d","tool_call_id":"`+asked+`","user_id":"ada","value":"yes"}`).Status)
	for _, body := range []string{
		`{}`, `no`, `{"chat_id":"c","tool_call_id":"t1/1"}`, `{"chat_id":"c","value":1}`, `{"tool_call_id":"t1/1","value":1}`,
		`{"chat_id":"c","tool_call_id":"t1/1","value":1e9999999999999}`, `{"chat_id":"c","tool_call_id":"t1/1","value":"` + strings.Repeat("x", 33<<10) + `"}`,
	} {
		require.Equal(t, "400", a.post("app", body).Header.Get("Nats-Service-Error-Code"), "%.80s", body)
	}
	require.Empty(t, seen)
}

func TestRequestAPISaysWhenAnAnswerIsNotDecidedInTime(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	asked := a.ask(turnOf("c", "", "t1"), "1")
	var v oneturn.Verdict
	require.NoError(t, json.Unmarshal(a.post("app", `{"chat_id":"c","tool_call_id":"`+asked+`","value":null}`).Data, &v))
	require.Equal(t, oneturn.StatusPublished, v.Status)
	require.Equal(t, oneturn.VerdictPublished, v.Code)
	require.Contains(t, v.Message, "is published, and not decided on yet")
}

func TestWhoWaitsForATurnIsToldOfItsQuestions(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	told := make(chan *oneturn.Wait, 16)
	c, err := oneturn.NewClient(a.server.Connect(), oneturn.ClientOptions{OnQuestion: func(w *oneturn.Wait) { told <- w }})
	require.NoError(t, err)
	id := turnOf("c", "r", "t1")
	a.ask(id, "1")
	a.decide(id, "1", idempotency.Answered)
	early := a.ask(id, "2")
	ended := make(chan error, 1)
	go func() {
		_, err := c.Await(a.soon(), id)
		ended <- err
	}()
	next := func() *oneturn.Wait {
		select {
		case w := <-told:
			return w
		case <-a.soon().Done():
			require.Fail(t, "not told")
			return nil
		}
	}
	require.Equal(t, early, next().ToolCallID)
	later := a.ask(id, "3")
	w := next()
	require.Equal(t, later, w.ToolCallID)
	require.Equal(t, oneturn.WaitOpen, w.State)
	require.Equal(t, "Approval", w.Component)
	a.finish(id)
	require.NoError(t, <-ended)
	require.Empty(t, told, "each is told once")
}
