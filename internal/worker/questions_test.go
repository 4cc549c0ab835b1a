package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// asker writes questions into a journal as the owner of a turn does, while a worker serves the
// request API.
type asker struct {
	*testing.T
	server  *oneturntest.Server
	nc      *nats.Conn
	space   subjects.Space
	store   *kvstore.Store
	journal *idempotency.Journal
	client  *oneturn.Client

	schedule func(context.Context, *events.Expire) error
	leases   uint64
	holds    map[oneturn.TurnID]idempotency.Hold
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	s := oneturntest.NewServer(t)
	s.Provision(func(o *provision.Options) { o.Pools = []string{"default", "other"} })
	config := greeter()
	config.Pool = "other" // it answers requests; the answers to the questions are the test's
	w := start(t, s, config)
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	a := &asker{T: t, server: s, nc: s.Connect(), client: client(t, s), holds: map[oneturn.TurnID]idempotency.Hold{}}
	var err error
	a.space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	a.store, err = kvstore.Open(a.nc, a.space)
	require.NoError(t, err)
	t.Cleanup(a.store.Close)
	a.journal = idempotency.New(a.store, "asker", idempotency.Options{})
	js, err := jetstream.New(a.nc)
	require.NoError(t, err)
	a.schedule = timers.ScheduleExpiry(js, a.space)
	return a
}

func callID(id oneturn.TurnID) string {
	return events.CallID(events.TurnID(id), subjects.TurnToken(id.Run, id.Turn))
}

// hold claims a turn, or returns the claim that was made.
func (a *asker) hold(id oneturn.TurnID) idempotency.Hold {
	a.Helper()
	if h, ok := a.holds[id]; ok {
		return h
	}
	a.leases++
	event, err := events.Encode(events.KindToolCall, &events.ToolCall{
		ID: callID(id), AppID: id.App, ChatID: id.Chat, RunID: id.Run, Turn: id.Turn, ToolCallID: callID(id), ToolName: "approve", WorkflowName: "Flow",
		InteractionType: events.InteractionAutoTool,
	}, time.Now())
	require.NoError(a, err)
	d, err := a.journal.Claim(a.Context(), idempotency.Claim{
		Key:    subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn),
		Lease:  idempotency.Lease{Stream: a.space.InStream(), Seq: 1000 + a.leases, Delivery: 1},
		Effect: "replay", Event: event,
	})
	require.NoError(a, err)
	require.Equal(a, idempotency.Run, d.Action)
	a.holds[id] = d.Hold
	return d.Hold
}

// ask stores a question and returns its tool_call_id; change may alter its event.
func (a *asker) ask(id oneturn.TurnID, name string, change ...func(*events.ToolCall)) string {
	a.Helper()
	component := "Approval"
	q := &events.ToolCall{
		AppID: id.App, ChatID: id.Chat, RunID: id.Run, Turn: id.Turn, ToolName: "approve", WorkflowName: "Flow", Agent: "Boss", UserID: "ada",
		ToolCallID: events.QuestionID(callID(id), name), AwaitingResponse: true, ComponentType: &component,
		Display: events.DisplayArtifact, InteractionType: events.InteractionUITool,
		Answer: &events.AnswerTo{
			Subject: a.space.In("default", events.KindToolCallResponse, id.App, "Flow", id.Chat), ExpiresAt: time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond),
			Schema: map[string]any{"type": "object"},
		},
		Payload: events.ToolCallPayload{Shown: map[string]any{"amount": json.Number("7")}},
	}
	q.ID, q.CallID, q.Corr = q.ToolCallID, q.ToolCallID, q.ToolCallID
	for _, f := range change {
		f(q)
	}
	event, err := events.Encode(events.KindToolCall, q, time.Now())
	require.NoError(a, err)
	reply, err := a.journal.Ask(a.Context(), a.hold(id), idempotency.Question{ID: name, Digest: "d", Event: event})
	require.NoError(a, err)
	require.Equal(a, idempotency.Open, reply.Outcome)
	require.NoError(a, a.schedule(a.Context(), &events.Expire{
		TurnID: events.TurnID(id), Workflow: "Flow", Key: a.hold(id).Key.String(), Ask: name, ToolCallID: q.ToolCallID, ExpiresAt: time.Now().Add(time.Hour),
	}))
	return q.ToolCallID
}

// decide answers or expires a question as a worker does.
func (a *asker) decide(id oneturn.TurnID, name string, how idempotency.Outcome) {
	a.Helper()
	a.leases++
	v, err := a.journal.Answer(a.Context(), idempotency.Answer{
		Key: a.hold(id).Key, ID: name, Lease: idempotency.Lease{Stream: a.space.InStream(), Seq: 1000 + a.leases, Delivery: 1},
		Outcome: how, Digest: "a", Data: []byte(`{}`), Check: func(idempotency.Record) error { return nil },
		Ack: func(idempotency.Record) ([]byte, error) {
			e := (&events.ToolCall{AppID: id.App, ChatID: id.Chat, Turn: id.Turn, ToolCallID: events.QuestionID(callID(id), name)}).Ack(events.AckAccepted, "ada")
			return events.Encode(events.KindToolCallAck, e, time.Now())
		},
	})
	require.NoError(a, err)
	require.Equal(a, idempotency.Accepted, v.Status)
}

func (a *asker) finish(id oneturn.TurnID) {
	a.Helper()
	event, err := events.Encode(events.KindToolResponse, &events.ToolResponse{
		AppID: id.App, ChatID: id.Chat, RunID: id.Run, Turn: id.Turn, ToolCallID: callID(id), Status: events.StatusOK, Success: true, Content: "done",
	}, time.Now())
	require.NoError(a, err)
	_, err = a.journal.Finish(a.Context(), a.hold(id), event)
	require.NoError(a, err)
}

// questions reads all pages and returns the ids.
func (a *asker) questions(q oneturn.QuestionFilter) (ids []string, pages int) {
	a.Helper()
	for {
		page, err := a.client.Questions(a.Context(), q)
		require.NoError(a, err)
		for _, w := range page.Questions {
			ids = append(ids, w.ToolCallID)
		}
		pages++
		if q.From = page.Next; q.From == 0 {
			return ids, pages
		}
	}
}

func turnOf(chat, run, turn string) oneturn.TurnID {
	return oneturn.TurnID{App: "app", Chat: chat, Run: run, Turn: turn}
}

func TestQuestionsListsTheOpenQuestionsOfAChat(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	one, two, three := turnOf("chat 1", "", "t1"), turnOf("chat 1", "r", "t2"), turnOf("chat 1", "", "t3")
	first := a.ask(one, "1")
	a.ask(one, "2")
	second := a.ask(two, "approval", func(q *events.ToolCall) { q.Secret = true })
	a.ask(three, "1")
	a.ask(turnOf("chat 2", "", "t1"), "1")
	a.ask(oneturn.TurnID{App: "other", Chat: "chat 1", Turn: "t1"}, "1")
	a.decide(one, "2", idempotency.Answered)
	a.finish(three)

	page, err := a.client.Questions(t.Context(), oneturn.QuestionFilter{App: "app", Chat: "chat 1"})
	require.NoError(t, err)
	require.Zero(t, page.Next)
	require.Len(t, page.Questions, 2)
	w := page.Questions[0]
	require.WithinDuration(t, time.Now(), w.AskedAt, time.Minute)
	require.WithinDuration(t, time.Now().Add(time.Hour), w.ExpiresAt, time.Minute)
	require.NotZero(t, w.Sequence)
	require.JSONEq(t, `{"type":"object"}`, string(w.Schema))
	require.Contains(t, string(w.Payload), `"amount":7`)
	require.Equal(t, len(w.Payload), w.PayloadBytes)
	require.Equal(t, api.Question{
		Sequence: w.Sequence, State: api.Open, ToolCallID: first, App: "app", Chat: "chat 1", Turn: "t1", Workflow: "Flow", Agent: "Boss",
		Tool: "approve", Interaction: "ui_tool", Component: "Approval", Display: "artifact", User: "ada", AskedAt: w.AskedAt, ExpiresAt: w.ExpiresAt,
		Subject: "oneturn.in.default.tool_call_response.app.Flow.chat=201", Schema: w.Schema, Payload: w.Payload, PayloadBytes: w.PayloadBytes,
	}, w)
	require.Equal(t, second, page.Questions[1].ToolCallID)
	require.Equal(t, "r", page.Questions[1].Run)
	require.True(t, page.Questions[1].Secret)

	all, err := a.client.Questions(t.Context(), oneturn.QuestionFilter{App: "app"})
	require.NoError(t, err)
	require.Len(t, all.Questions, 3)
	require.Empty(t, all.Questions[0].Payload, "of a tenant the lists are short")
}

func TestFormerVerbOfQuestionsRepliesUnderItsFormerKey(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	id := a.ask(turnOf("chat 1", "", "t1"), "1")
	for verb, key := range map[string]string{api.VerbQuestions: "questions", api.VerbWaits: "waits"} {
		reply, err := a.nc.Request("oneturn.api.app."+verb, []byte(`{"chat":"chat 1"}`), 10*time.Second)
		require.NoError(t, err)
		var page map[string][]api.Question
		require.NoError(t, json.Unmarshal(reply.Data, &page), "%s", reply.Data)
		require.Len(t, page[key], 1, "%s: %s", verb, reply.Data)
		require.Equal(t, id, page[key][0].ToolCallID)
		require.Len(t, page, 1)
	}
}

func TestWaitsOfATenantComeInPagesThatReadSixteenRecords(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	var open []string
	for n := range 40 {
		id := turnOf(fmt.Sprintf("c%d", n%7), "", fmt.Sprintf("t%d", n))
		asked := a.ask(id, "1")
		if n%4 == 0 {
			a.decide(id, "1", idempotency.Answered)
			continue
		}
		open = append(open, asked)
	}
	ids, pages := a.questions(oneturn.QuestionFilter{App: "app"})
	require.Equal(t, open, ids)
	require.Equal(t, 3, pages, "40 questions, the decided ones among them")
	ids, _ = a.questions(oneturn.QuestionFilter{App: "none"})
	require.Empty(t, ids)
}

func TestWaitsAnswersAreBounded(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	large := func(n int) func(q *events.ToolCall) {
		return func(q *events.ToolCall) { q.Payload.Shown = map[string]any{"text": strings.Repeat("x", n)} }
	}
	a.ask(turnOf("c", "", "t0"), "1", large(70<<10))
	for n := range 12 {
		a.ask(turnOf("c", "", fmt.Sprintf("t%d", n+1)), "1", large(60<<10))
	}
	page, err := a.client.Questions(t.Context(), oneturn.QuestionFilter{App: "app", Chat: "c"})
	require.NoError(t, err)
	require.Empty(t, page.Questions[0].Payload, "too long for a list")
	require.Greater(t, page.Questions[0].PayloadBytes, 70<<10)
	require.NotZero(t, page.Next)
	ids, pages := a.questions(oneturn.QuestionFilter{App: "app", Chat: "c"})
	require.Len(t, ids, 13)
	require.Equal(t, 2, pages)
}

// named requests one question of the tenant app, once: [oneturn.Client.Question] repeats the request.
func (a *asker) named(chat, toolCallID string) (*api.Questions, error) {
	body, err := json.Marshal(api.QuestionsRequest{Chat: chat, ToolCallID: toolCallID})
	require.NoError(a, err)
	reply, err := a.nc.Request("oneturn.api.app."+api.VerbQuestions, body, 10*time.Second)
	require.NoError(a, err)
	if text := reply.Header.Get(micro.ErrorHeader); text != "" {
		return nil, errors.New(text)
	}
	var page api.Questions
	return &page, json.Unmarshal(reply.Data, &page)
}

func TestQuestionsReturnsTheStateOfAQuestionThatIsNamed(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	states := map[string]api.QuestionState{}
	for n, run := range []string{"", "r 1"} {
		for _, how := range []idempotency.Outcome{idempotency.Open, idempotency.Answered, idempotency.Expired} {
			id := turnOf("c", run, fmt.Sprintf("t/%s%d", how, n))
			asked := a.ask(id, "a question")
			states[asked] = api.Open
			if how != idempotency.Open {
				a.decide(id, "a question", how)
				states[asked] = api.QuestionState(how)
			}
		}
	}
	ended := turnOf("c", "", "ended")
	states[a.ask(ended, "1")] = api.Closed
	a.finish(ended)
	for id, want := range states {
		found, err := a.named("c", id)
		require.NoError(t, err, id)
		require.Len(t, found.Questions, 1, id)
		require.Equal(t, id, found.Questions[0].ToolCallID)
		require.Equal(t, want, found.Questions[0].State, id)
	}
	for _, id := range []string{"none/1", "ended", "ended/2", "t/0@00000000/a question", "/"} {
		found, err := a.named("c", id)
		require.NoError(t, err, id)
		require.Empty(t, found.Questions, id)
	}
	for _, run := range []string{"", "r 1"} {
		id := turnOf("c", run, "runs")
		a.hold(id)
		found, err := a.named("c", callID(id)+"/1")
		require.NoError(t, err)
		require.Equal(t, []api.Question{{
			State: api.NotAsked, ToolCallID: callID(id) + "/1", App: "app", Chat: "c", Run: run, Turn: "runs", Workflow: "Flow",
			Subject: "oneturn.in.default.tool_call_response.app.Flow.c",
		}}, found.Questions)
		a.finish(id)
		found, err = a.named("c", callID(id)+"/1")
		require.NoError(t, err)
		require.Empty(t, found.Questions)
	}
	_, err := a.named("", "ended/1")
	require.ErrorContains(t, err, "the chat of a question that is named")
}
