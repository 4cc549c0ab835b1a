package query

import (
	"context"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// maxQuestionPayload bounds the payload of one question in a reply, in bytes.
const maxQuestionPayload = 64 << 10

// ReadQuestion reads the record of a question, nil if it is damaged. Whole includes its schema and
// payload. The state is left empty, see [State].
func ReadQuestion(r *idempotency.Record, whole bool) *api.Question {
	if r.Damaged() {
		return nil
	}
	m, err := events.Parse(r.Data)
	if err != nil || m.Kind != events.KindToolCall {
		return nil
	}
	var e events.ToolCall
	if m.As(&e) != nil || e.Answer == nil {
		return nil
	}
	q := &api.Question{
		Sequence: r.Seq, ToolCallID: e.ToolCallID, App: e.AppID, Chat: e.ChatID, Run: e.RunID, Turn: e.Turn,
		Workflow: e.WorkflowName, Agent: e.Agent, Tool: e.ToolName, Interaction: e.InteractionType, Display: e.Display,
		User: e.UserID, Secret: e.Secret, AskedAt: r.Time.UTC(), ExpiresAt: e.Answer.ExpiresAt, Subject: e.Answer.Subject,
	}
	if e.ComponentType != nil {
		q.Component = *e.ComponentType
	}
	if !whole {
		return q
	}
	if e.Answer.Schema != nil {
		q.Schema, _ = events.AppendJSON(nil, e.Answer.Schema) // it was JSON
	}
	q.Payload, _ = events.AppendJSON(nil, m.Data["payload"])
	if q.PayloadBytes = len(q.Payload); q.PayloadBytes > maxQuestionPayload {
		q.Payload = nil
	}
	return q
}

// State returns the state of a question. The records that may have ended it are read by their names:
// one may be left of an earlier generation of the key, older than the question.
func State(ctx context.Context, store *kvstore.Store, r *idempotency.Record) (api.QuestionState, error) {
	ask, ok := subjects.ParseKey(r.Key)
	if !ok {
		return api.Closed, nil
	}
	end := ask.Public(events.KindToolResponse)
	found, err := store.LastOf(ctx, []string{ask.Public(events.RecordAck, ask.ID), ask.Key.Private(events.RecordAnswer, ask.ID), end, ask.Public(events.RecordCancel)})
	if err != nil {
		return "", err
	}
	for _, decided := range found[:3] {
		switch {
		case decided == nil || decided.Former(r.Seq):
		case decided.Key == end:
			return api.Closed, nil
		default:
			return outcome(decided), nil
		}
	}
	if found[3] == nil {
		return api.Open, nil
	}
	t, err := idempotency.LoadEnds(ctx, store, ask.Key)
	if err != nil || t.Cancel == nil {
		return api.Open, err
	}
	return api.Cancelled, nil
}

// outcome is how a question was decided, by its ack or answer.
func outcome(decided *idempotency.Record) api.QuestionState {
	switch idempotency.Outcome(decided.Meta.Outcome) {
	case idempotency.Expired:
		return api.Expired
	case idempotency.Cancelled:
		return api.Cancelled
	case idempotency.Answered, idempotency.Open:
	}
	return api.Answered
}

// EventID returns the tool_call_id of an event, "" if it has none.
func EventID(event []byte) string {
	m, err := events.Parse(event)
	if err != nil {
		return ""
	}
	id, _ := m.Data["tool_call_id"].(string)
	return id
}
