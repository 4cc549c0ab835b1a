package run

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// This file makes the record of a question from what a tool asks: its id, event, schema and expiry, taken from the record
// of an earlier run where there is one. wait.go stores it and waits for the answer.

// question is a question that a run asks.
type question struct {
	idempotency.Question

	token  string         // of the id
	callID string         // tool_call_id of the event
	expire *events.Expire // the end of the time for an answer, nil if there is none

	scheduled atomic.Bool   // the server knows that end
	notify    chan struct{} // has a value when the question may have been decided
	over      chan struct{} // closed when nothing waits for the question any more
	displayed bool          // guarded by run.mu: it is stored, and the tool waits
	notified  bool          // guarded by run.mu: its wait was woken, and has not read the question since
}

// maxSchema bounds the schema of a question in bytes.
const maxSchema = 64 << 10

// question makes the record of what a tool asks.
func (h *host) question(ctx context.Context, asks tools.Question) (*question, error) {
	i := interaction{
		name: asks.Name, number: asks.Number, tool: h.toolOf(asks.Tool), component: asks.Component, display: asks.Display, kind: events.InteractionUITool, payload: asks.Payload,
	}
	if asks.Input {
		i.kind = events.InteractionInputRequest
	}
	id, err := h.nameQuestion(&i)
	if err != nil {
		return nil, err
	}
	r := h.run
	e, err := h.event(ctx, id, &i)
	if err != nil {
		return nil, err
	}
	e.AwaitingResponse, e.Secret = true, asks.Secret
	e.Answer = &events.AnswerTo{Subject: r.t.answerSubject(r.cfg.Space), ExpiresAt: r.expiry(id, asks.Timeout)}
	var schema []byte
	if len(asks.Schema) > 0 {
		if e.Answer.Schema, err = r.reg.decodeSchema(asks.Schema); err != nil {
			return nil, err
		}
		if schema, err = events.AppendJSON(nil, e.Answer.Schema); err != nil {
			return nil, err
		}
	}
	q := &question{token: subjects.Token(id), callID: e.ToolCallID, notify: make(chan struct{}, 1), over: make(chan struct{})}
	q.ID, q.Digest, q.Known = id, digest(&i, string(schema), asks.Secret), r.earlierState(id)
	if q.Event, err = events.Encode(events.KindToolCall, e, r.cfg.Now()); err != nil {
		return nil, err
	}
	stored := r.storedEvent(id, e)
	if at := stored.Answer.ExpiresAt; !at.IsZero() {
		q.expire = &events.Expire{
			TurnID: r.t.TurnID, Workflow: stored.WorkflowName, Pool: poolOf(r.cfg.Space, stored.Answer.Subject), Key: r.t.Name, Ask: id, ToolCallID: q.callID, ExpiresAt: at,
		}
	}
	return q, nil
}

// decodeSchema reads the schema of an answer, and refuses one that answers cannot be checked against.
func (g *Registry) decodeSchema(schema []byte) (any, error) {
	if len(schema) > maxSchema {
		return nil, &events.Error{Code: events.CodeTooLarge, Op: "ask", Msg: fmt.Sprintf("the schema of the answer has %d bytes: at most %d are allowed", len(schema), maxSchema)}
	}
	if err := g.checkSchema(schema); err != nil {
		return nil, err
	}
	return events.Decode(schema)
}

// earlierState is what the journal held of a question when the run began.
func (r *Run) earlierState(id string) idempotency.QuestionState {
	q, _ := r.before.CallOf(r.t.Key).Question(id)
	return q
}

// askedBefore is the record of a question that an earlier run has stored, nil if it has not.
func (r *Run) askedBefore(id string) *idempotency.Record { return r.earlierState(id).Ask }

// storedEvent is the event of a question as an earlier run has stored it, else the given one. The
// first one stays, with all that it shows and with the end of its time.
func (r *Run) storedEvent(id string, fresh *events.ToolCall) *events.ToolCall {
	asked := r.askedBefore(id)
	if asked == nil {
		return fresh
	}
	e, err := events.ReadCall(asked.Data)
	if err != nil || e.Answer == nil {
		return fresh
	}
	if !sameShown(e.Payload.Shown, fresh.Payload.Shown) {
		r.cfg.Logger.With(r.t.Attrs()...).Debug("a question shows something else than when it was first asked; what was shown first stays", "question", e.ToolCallID)
	}
	return e
}

// sameShown reports whether a question shows what was stored, apart from the members that every event has.
func sameShown(stored, fresh map[string]any) bool {
	fresh = maps.Clone(fresh)
	for _, name := range []string{"agent_name", "interaction_type", "workflow_name", "display", "mode"} {
		delete(fresh, name)
	}
	return reflect.DeepEqual(stored, fresh) || len(stored) == 0 && len(fresh) == 0
}

// expiry is when the time to answer a question is over, by the clock of the server: after its timeout, and at the
// latest with the life of the turn. It is zero if there is no end. The server is only asked for its time if a timeout
// begins now; if it does not answer, its clock as it was read last is used.
func (r *Run) expiry(id string, timeout time.Duration) time.Time {
	var end time.Time
	claimed, now := r.begun, r.t.Now(r.cfg.Now())
	if timeout > 0 && r.cfg.ServerTime != nil && r.askedBefore(id) == nil {
		if server, err := r.serverTime(); err == nil {
			now = server
		}
	}
	if r.before != nil && r.before.Claim != nil {
		claimed = r.before.Claim.Time
	}
	for _, server := range []time.Time{claimed, r.t.Message.Arrived} { // it is at least that late, if the server did not answer
		if now.Before(server) {
			now = server
		}
	}
	if r.cfg.MaxTurnLife > 0 {
		end = claimed.Add(r.cfg.MaxTurnLife)
	}
	if timeout > 0 && (end.IsZero() || now.Add(timeout).Before(end)) {
		end = now.Add(timeout)
	}
	return end
}

// serverTime asks the server for the time. A question does not fail if it cannot.
func (r *Run) serverTime() (time.Time, error) {
	ctx, cancel := context.WithTimeout(r.leaseContext(), jsapi.Timeout)
	defer cancel()
	now, err := r.cfg.ServerTime(ctx)
	if err != nil {
		r.reg.warn(r.t, "the server does not report the time; its last known time bounds the time for an answer", r.t.Attrs("err", events.LogText(err))...)
	}
	return now, err
}
