package main

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/subjects"
)

// asker writes questions into the journal as the owner of a turn does.
type asker struct {
	*workerServer
	*testing.T

	space    subjects.Space
	schedule func(context.Context, *events.Expire) error
	journal  *idempotency.Journal
	leases   uint64
	holds    map[oneturn.TurnID]idempotency.Hold
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	a := &asker{workerServer: newWorkerServer(t), T: t, holds: map[oneturn.TurnID]idempotency.Hold{}}
	var err error
	a.space, err = subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	js, err := jetstream.New(a.Connect())
	require.NoError(t, err)
	a.schedule = timers.ScheduleExpiry(js, a.space)
	store, err := kvstore.Open(a.Connect(), a.space)
	require.NoError(t, err)
	t.Cleanup(store.Close)
	a.journal = idempotency.New(store, "asker", idempotency.Options{})
	return a
}

func (a *asker) lease() idempotency.Lease {
	a.leases++
	return idempotency.Lease{Stream: a.space.InStream(), Seq: 1000 + a.leases, Delivery: 1}
}

// ask stores a question of workflow Hello, which the worker knows, and returns its id.
func (a *asker) ask(id oneturn.TurnID, name string, change ...func(*events.ToolCall)) string {
	a.Helper()
	call := events.CallID(events.TurnID(id), subjects.TurnToken(id.Run, id.Turn))
	if _, ok := a.holds[id]; !ok {
		event, err := events.Encode(events.KindToolCall, &events.ToolCall{
			AppID: id.App, ChatID: id.Chat, RunID: id.Run, Turn: id.Turn, ID: call, ToolCallID: call, CallID: call, Corr: call, ToolName: "greet",
			Agent: "Greeter", WorkflowName: "Hello", InteractionType: events.InteractionAutoTool,
		}, time.Now())
		require.NoError(a, err)
		d, err := a.journal.Claim(a.Context(), idempotency.Claim{
			Key: subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn), Lease: a.lease(), Effect: "replay", Event: event,
		})
		require.NoError(a, err)
		require.Equal(a, idempotency.Run, d.Action)
		a.holds[id] = d.Hold
	}
	component := "Approval"
	q := &events.ToolCall{
		AppID: id.App, ChatID: id.Chat, RunID: id.Run, Turn: id.Turn, ToolName: "approve", WorkflowName: "Hello", Agent: "Greeter", UserID: "ada",
		ToolCallID: events.QuestionID(call, name), AwaitingResponse: true, ComponentType: &component,
		Display: events.DisplayArtifact, InteractionType: events.InteractionUITool,
		Answer:  &events.AnswerTo{Subject: a.space.In("default", events.KindToolCallResponse, id.App, "Hello", id.Chat)},
		Payload: events.ToolCallPayload{Shown: map[string]any{"amount": json.Number("7")}},
	}
	q.ID, q.CallID, q.Corr = q.ToolCallID, q.ToolCallID, q.ToolCallID
	for _, f := range change {
		f(q)
	}
	event, err := events.Encode(events.KindToolCall, q, time.Now())
	require.NoError(a, err)
	_, err = a.journal.Ask(a.Context(), a.holds[id], idempotency.Question{ID: name, Digest: "d", Event: event})
	require.NoError(a, err)
	require.NoError(a, a.schedule(a.Context(), &events.Expire{
		TurnID: events.TurnID(id), Workflow: q.WorkflowName, Key: a.holds[id].Key.String(), Ask: name, ToolCallID: q.ToolCallID, ExpiresAt: time.Now().Add(24 * time.Hour),
	}))
	return q.ToolCallID
}

func until(at time.Time) func(*events.ToolCall) {
	return func(q *events.ToolCall) { q.Answer.ExpiresAt = at.UTC().Truncate(time.Millisecond) }
}

// answer decides a question as a worker does.
func (a *asker) answer(id oneturn.TurnID, name string) {
	a.Helper()
	call := events.CallID(events.TurnID(id), subjects.TurnToken(id.Run, id.Turn))
	v, err := a.journal.Answer(a.Context(), idempotency.Answer{
		Key: a.holds[id].Key, ID: name, Lease: a.lease(), Outcome: idempotency.Answered, Digest: "a", Data: []byte(`{}`),
		Check: func(idempotency.Record) error { return nil },
		Ack: func(idempotency.Record) ([]byte, error) {
			e := (&events.ToolCall{AppID: id.App, ChatID: id.Chat, Turn: id.Turn, ToolCallID: events.QuestionID(call, name)}).Ack(events.AckAccepted, "ada")
			return events.Encode(events.KindToolCallAck, e, time.Now())
		},
	})
	require.NoError(a, err)
	require.Equal(a, idempotency.Accepted, v.Status)
}

// park lets a turn go until one of its questions is answered.
func (a *asker) park(id oneturn.TurnID, open ...string) {
	a.Helper()
	h := a.holds[id]
	parked, err := a.journal.Park(a.Context(), &h, idempotency.AskedBy(h.Key, open...), json.RawMessage(`{}`))
	require.NoError(a, err)
	require.True(a, parked)
}
