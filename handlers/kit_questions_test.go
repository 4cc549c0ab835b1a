package handlers_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// asker is a turn that asks, in the hands of a worker that is not the kit's.
type asker struct {
	k       *kit
	journal *idempotency.Journal
	hold    idempotency.Hold
	key     subjects.Key
	id      events.TurnID
	step    string // whose questions it asks, "" for the turn itself
}

// asking is the hold under which it asks.
func (a *asker) asking() idempotency.Hold {
	if a.step == "" {
		return a.hold
	}
	return a.hold.ForStep(subjects.StepCall(a.step), "replay")
}

// asker claims a turn.
func (k *kit) asker(turn, run string) *asker {
	k.t.Helper()
	id := events.TurnID{App: "app", Chat: "chat", Run: run, Turn: turn}
	a := &asker{k: k, id: id, key: subjects.TurnKey("app", "chat", run, turn), journal: idempotency.New(k.store, "owner", idempotency.Options{})}
	component := "Card"
	call := &events.ToolCall{
		AppID: "app", ChatID: "chat", RunID: run, Turn: turn, Agent: "A", ToolName: "t", WorkflowName: "WF", ToolCallID: a.callID(),
		ComponentType: &component, InteractionType: events.InteractionAutoTool, Payload: events.ToolCallPayload{ToolArgs: map[string]any{}},
	}
	event, err := events.Encode(events.KindToolCall, call, time.Now())
	require.NoError(k.t, err)
	d, err := a.journal.Claim(k.t.Context(), idempotency.Claim{
		Key: a.key, Lease: idempotency.Lease{Stream: "IN", Seq: 1, Delivery: 1}, Event: event, Effect: "replay",
	})
	require.NoError(k.t, err)
	require.Equal(k.t, idempotency.Run, d.Action)
	a.hold = d.Hold
	return a
}

func (a *asker) callID() string { return events.CallID(a.id, a.key.Turn) }

func (a *asker) question(ask string) string {
	call := a.callID()
	if a.step != "" {
		call = events.StepID(call, a.step)
	}
	return events.QuestionID(call, ask)
}

// ask stores a question.
func (a *asker) ask(ask string, change ...func(*events.ToolCall)) {
	a.k.t.Helper()
	component, id := "Card", a.question(ask)
	e := &events.ToolCall{
		ID: id, AppID: "app", ChatID: "chat", RunID: a.id.Run, Turn: a.id.Turn, Agent: "A", ToolName: "approve", ToolCallID: id, CallID: id, Corr: id,
		AwaitingResponse: true, ComponentType: &component, Display: "inline", DisplayType: "inline",
		InteractionType: events.InteractionUITool, WorkflowName: "WF", Payload: events.ToolCallPayload{Shown: map[string]any{}},
		Answer: &events.AnswerTo{Subject: a.k.space.In("default", events.KindToolCallResponse, "app", "WF", "chat"), ExpiresAt: time.Now().Add(time.Hour)},
	}
	for _, f := range change {
		f(e)
	}
	event, err := events.Encode(events.KindToolCall, e, time.Now())
	require.NoError(a.k.t, err)
	_, err = a.journal.Ask(a.k.t.Context(), a.asking(), idempotency.Question{ID: ask, Digest: "d", Event: event})
	require.NoError(a.k.t, err)
}

// park lets the turn go.
func (a *asker) park(open ...string) {
	a.k.t.Helper()
	parked, err := a.journal.Park(a.k.t.Context(), &a.hold, idempotency.AskedBy(a.asking().Key, open...), json.RawMessage(`{}`))
	require.NoError(a.k.t, err)
	require.True(a.k.t, parked)
}

// outcome is the outcome of a question in the journal.
func (a *asker) outcome(ask string) idempotency.Outcome {
	a.k.t.Helper()
	t, err := idempotency.Load(a.k.t.Context(), a.k.store, a.key)
	require.NoError(a.k.t, err)
	q, _ := t.CallOf(a.asking().Key).Question(ask)
	return q.Outcome()
}

// ack is the event that closed a question.
func (a *asker) ack(ask string) *events.ToolCallAck {
	a.k.t.Helper()
	r, err := a.k.store.Last(a.k.t.Context(), a.key.Public(events.RecordAck, subjects.Token(ask)))
	require.NoError(a.k.t, err)
	m, err := events.Parse(r.Data)
	require.NoError(a.k.t, err)
	require.Equal(a.k.t, events.KindToolCallAck, m.Kind)
	var e events.ToolCallAck
	require.NoError(a.k.t, m.As(&e))
	return &e
}

// mail is an inbound message with an inbox for its result.
type mail struct {
	*inbound.Message

	results *nats.Subscription
}

func (k *kit) mail(seq uint64, kind string, body []byte) *mail {
	k.t.Helper()
	nc := k.js.Conn()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	require.NoError(k.t, err)
	return &mail{results: sub, Message: &inbound.Message{
		Subject: k.space.In("default", kind, "app", "WF", "chat"), Data: body, Header: nats.Header{subjects.HeaderReply: {inbox}},
		Lease: idempotency.Lease{Stream: "IN", Seq: seq, Delivery: 1}, Stored: time.Now(),
		Held: k.t.Context(), Fresh: func() bool { return true },
	}}
}

// answers is an answer of user u in chat.
func (k *kit) answers(seq uint64, question string, value any, change ...func(*events.ToolCallResponse)) *mail {
	k.t.Helper()
	r := &events.ToolCallResponse{
		TurnID: events.TurnID{App: "app", Chat: "chat"}, Workflow: "WF", ToolCallID: question, UserID: "u", Value: value,
	}
	for _, f := range change {
		f(r)
	}
	body, err := events.EncodeAnswer(r, time.Now())
	require.NoError(k.t, err)
	return k.mail(seq, events.KindToolCallResponse, body)
}

// result is the last result that the sender of a message received; each message has one once it is handled.
func (m *mail) result(t *testing.T) *events.AnswerResult {
	t.Helper()
	raw, err := m.results.NextMsg(10 * time.Second)
	require.NoError(t, err)
	v, err := events.DecodeAnswerResult(raw.Data)
	require.NoError(t, err)
	return v
}

// silent requires that the sender of a message received no result, or no other one.
func (m *mail) silent(t *testing.T, k *kit) {
	t.Helper()
	require.NoError(t, k.js.Conn().Flush())
	n, _, err := m.results.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
}

// handled handles a message that has to be acknowledged, erased if it may be a secret answer, and
// returns the result.
func (k *kit) handled(m *mail) *events.AnswerResult {
	k.t.Helper()
	require.Contains(k.t, []inbound.Do{inbound.Ack, inbound.Erase}, k.Handle(k.t.Context(), m.Message).Do)
	return m.result(k.t)
}

// bindFolder binds a manifest of workflow WF.
func (k *kit) bindFolder(manifest string) {
	k.t.Helper()
	root := k.t.TempDir()
	require.NoError(k.t, os.Mkdir(filepath.Join(root, "WF"), 0o700))
	require.NoError(k.t, os.WriteFile(filepath.Join(root, "WF", "oneturn.yaml"), []byte(manifest), 0o600))
	set, err := bindings.Load(k.t.Context(), bindings.Options{Root: root})
	require.NoError(k.t, err)
	k.Bindings = func() *bindings.Set { return set }
}
