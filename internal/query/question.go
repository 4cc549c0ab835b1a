package query

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// maxQuestionPayload bounds the payload of one question in a reply, in bytes.
const maxQuestionPayload = 64 << 10

// mostAlike bounds the questions of one id that are read: there is one, unless turn keys were chosen to look alike.
const mostAlike = 16

// Question returns the question with an id, in any state: [api.NotAsked] if its turn runs and has not asked it; nil if
// there is no such turn either. The chat is an id; the run is "" if it is not known. It fails as [Lister.Locate] does.
func (r *Reader) Question(ctx context.Context, app, chat, run, id string) (*api.Question, error) {
	call, ask, ok := events.ParseQuestionID(id)
	if !ok {
		return nil, nil //nolint:nilnil // no question has such an id
	}
	ref := &Ref{App: app, Chat: subjects.Token(chat), Run: run, Call: call, Ask: subjects.Token(ask)}
	names, err := r.Names(app).Locate(ctx, ref, ref.Questions)
	if err != nil {
		return nil, err
	}
	for _, name := range names[:min(len(names), mostAlike)] {
		asked, err := r.store.Last(ctx, name.Name())
		if errors.Is(err, idempotency.ErrNotFound) {
			continue // it has just expired
		}
		if err != nil {
			return nil, err
		}
		q := ReadQuestion(&asked, true)
		if q == nil || q.ToolCallID != id {
			continue
		}
		q.State, err = r.stateOf(ctx, &asked)
		return q, err
	}
	return r.notAskedYet(ctx, ref, id)
}

// notAskedYet is a question that a running call may still ask, nil if there is no such call.
func (r *Reader) notAskedYet(ctx context.Context, ref *Ref, id string) (*api.Question, error) {
	claim, err := OpenCall(ctx, r.store, r.Names(ref.App), ref)
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	}
	e, err := events.ReadCall(claim.Data)
	if err != nil || !slices.ContainsFunc(ref.Refs(), func(r *Ref) bool { return r.Call == e.ToolCallID }) {
		return nil, nil //nolint:nilnil,nilerr // a damaged one asks nothing
	}
	return &api.Question{
		State: api.NotAsked, ToolCallID: id, App: e.AppID, Chat: e.ChatID, Run: e.RunID, Turn: e.Turn, Workflow: e.WorkflowName, Agent: e.Agent, User: e.UserID,
		Subject: r.space.In(cmp.Or(claim.Meta.Pool, subjects.DefaultPool), events.KindToolCallResponse, e.AppID, e.WorkflowName, e.ChatID),
	}, nil
}

// ReadQuestion reads the record of a question, nil if it is damaged. Whole includes its schema and
// payload. The state is left empty, see [StateOf].
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

// StateOf returns the state of a question of a turn, by its [idempotency.Turn.Questions]. The answer decides, and the
// ack if the answer has expired. An answer that cannot be read decides nothing that is known.
func StateOf(t *idempotency.Turn, q *idempotency.QuestionState) api.QuestionState {
	decided := q.Answer
	if decided == nil && q.Ack != nil && q.Ack.Err == nil { // a damaged event decides nothing
		decided = q.Ack
	}
	switch {
	case decided == nil && (t.Response != nil || t.CallEnded(q.Call)):
		return api.Closed
	case decided == nil && t.Cancel != nil && t.Cancel.Err == nil:
		return api.Cancelled
	case decided == nil:
		return api.Open
	case decided.Err != nil:
		return api.Unreadable
	}
	switch state := api.QuestionState(decided.Meta.Outcome); state {
	case api.Answered, api.Expired, api.Cancelled:
		return state
	default:
		return api.Unreadable
	}
}

// stateOf is [StateOf] of the record of a question: the records that may have ended it are read by their names.
func (r *Reader) stateOf(ctx context.Context, asked *idempotency.Record) (api.QuestionState, error) {
	ask, ok := subjects.ParseKey(asked.Key)
	if !ok {
		return api.Closed, nil
	}
	turn := ask.OfTurn()
	names := []string{
		turn.Public(events.RecordCall), turn.Public(events.RecordResponse), turn.Public(events.RecordCancel),
		ask.Public(events.RecordAck, ask.ID), ask.Key.Private(events.RecordAnswer, ask.ID),
	}
	if ask.Key != turn { // of a step
		names = append(names, ask.Public(events.RecordResponse))
	}
	found, err := r.store.LastOf(ctx, names)
	if err != nil {
		return "", err
	}
	t := idempotency.TurnOf(ask.Key, append(found, asked))
	if asked := t.Questions(); len(asked) > 0 {
		return StateOf(t, &asked[0]), nil
	}
	return api.Closed, nil // another turn was claimed under the key since
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
