package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// question is one that a run asks.
type question struct {
	idempotency.Question

	token  string         // of the id
	callID string         // tool_call_id of the event
	expire *events.Expire // the end of the time for an answer, nil if there is none

	scheduled atomic.Bool   // that end is, by the server
	wake      chan struct{} // somebody has heard that it is decided
	over      chan struct{} // nobody waits for it any more
	open      bool          // guarded by run.mu: it is on the screen, and the tool waits
	called    bool          // guarded by run.mu: its wait was woken, and has not looked since
}

// maxSchema bounds the schema of a question in bytes.
const maxSchema = 64 << 10

// question makes the record of what a tool asks.
func (d *desk) question(ctx context.Context, asks tools.Question) (*question, error) {
	put := exhibit{
		name: asks.Name, number: asks.Number, tool: asks.Tool, component: asks.Component, display: asks.Display, interaction: events.InteractionUITool, payload: asks.Payload,
	}
	if asks.Input {
		put.interaction = events.InteractionInputRequest
	}
	id, err := d.nameQuestion(&put)
	if err != nil {
		return nil, err
	}
	r := d.run
	e, err := d.event(ctx, id, &put)
	if err != nil {
		return nil, err
	}
	e.AwaitingResponse, e.Secret = true, asks.Secret
	e.Answer = &events.AnswerTo{Subject: r.t.answerSubject(r.h.Space), ExpiresAt: r.expiry(id, asks.Timeout)}
	var schema []byte
	if len(asks.Schema) > 0 {
		if e.Answer.Schema, err = r.h.decodeSchema(asks.Schema); err != nil {
			return nil, err
		}
		if schema, err = events.AppendJSON(nil, e.Answer.Schema); err != nil {
			return nil, err
		}
	}
	q := &question{token: subjects.Token(id), callID: e.ToolCallID, wake: make(chan struct{}, 1), over: make(chan struct{})}
	q.ID, q.Digest, q.Known = id, digest(&put, string(schema), asks.Secret), r.known(id)
	if q.Event, err = events.Encode(events.KindToolCall, e, r.h.Now()); err != nil {
		return nil, err
	}
	stored := r.stored(id, e)
	if at := stored.Answer.ExpiresAt; !at.IsZero() {
		q.expire = &events.Expire{
			TurnID: r.t.TurnID, Workflow: stored.WorkflowName, Pool: poolOf(r.h.Space, stored.Answer.Subject), Key: r.t.name, Ask: id, ToolCallID: q.callID, ExpiresAt: at,
		}
	}
	return q, nil
}

// decodeSchema reads the schema of an answer, and refuses one that no answer could be held
// against.
func (h *Handlers) decodeSchema(schema []byte) (any, error) {
	if len(schema) > maxSchema {
		return nil, &events.Error{Code: events.CodeTooLarge, Op: "ask", Msg: fmt.Sprintf("the schema of the answer has %d bytes, %d is the most", len(schema), maxSchema)}
	}
	if err := h.CheckSchema(schema); err != nil {
		return nil, err
	}
	return events.Decode(schema)
}

// known is what the journal held of a question when the run began.
func (r *run) known(id string) idempotency.Inquiry {
	if r.before == nil {
		return idempotency.Inquiry{}
	}
	q, _ := r.before.Question(id)
	return q
}

// askedBefore is the record of a question that an earlier run has stored, nil if it has not.
func (r *run) askedBefore(id string) *idempotency.Record { return r.known(id).Ask }

// stored is the event of a question as an earlier run has stored it, else the given one. The
// first one stays, with all that it shows and with the end of its time.
func (r *run) stored(id string, fresh *events.ToolCall) *events.ToolCall {
	asked := r.askedBefore(id)
	if asked == nil {
		return fresh
	}
	body, err := events.Parse(asked.Data)
	if err != nil {
		return fresh
	}
	var e events.ToolCall
	if body.As(&e) != nil || e.Answer == nil {
		return fresh
	}
	if !sameShown(e.Payload.Shown, fresh.Payload.Shown) {
		r.h.log(r.t).Debug("a question shows something else than when it was asked first; that stays", "question", e.ToolCallID)
	}
	return &e
}

// sameShown reports whether a question shows what was stored, the members that every event has
// not counted.
func sameShown(stored, fresh map[string]any) bool {
	fresh = maps.Clone(fresh)
	for _, name := range []string{"agent_name", "interaction_type", "workflow_name", "display", "mode"} {
		delete(fresh, name)
	}
	return reflect.DeepEqual(stored, fresh) || len(stored) == 0 && len(fresh) == 0
}

// expiry is when the time to answer a question is over, by the clock of the server: after a timeout,
// and with the life of the turn at the latest. It is zero when there is no end. The server is asked
// only for a timeout that begins now; its clock as it was read last stands in when it does not answer.
func (r *run) expiry(id string, timeout time.Duration) time.Time {
	var end time.Time
	claimed, now := r.begun, r.h.serverNow(r.t.m)
	if timeout > 0 && r.h.ServerTime != nil && r.askedBefore(id) == nil {
		if server, err := r.serverTime(); err == nil {
			now = server
		}
	}
	if r.before != nil && r.before.Claim != nil {
		claimed = r.before.Claim.Time
	}
	for _, server := range []time.Time{claimed, r.t.m.arrived} { // at the least, if it did not answer
		if now.Before(server) {
			now = server
		}
	}
	if r.h.MaxTurnLife > 0 {
		end = claimed.Add(r.h.MaxTurnLife)
	}
	if timeout > 0 && (end.IsZero() || now.Add(timeout).Before(end)) {
		end = now.Add(timeout)
	}
	return end
}

// serverTime asks the server for the time. A question is not held up for it.
func (r *run) serverTime() (time.Time, error) {
	ctx, cancel := context.WithTimeout(r.lives(), putTimeout)
	defer cancel()
	now, err := r.h.ServerTime(ctx)
	if err != nil {
		r.h.often(r.t.m, slog.LevelWarn, "the server does not report the time; its last known time bounds the time for an answer", "", r.t.with("err", logError(err))...)
	}
	return now, err
}

// answerSubject is where answers to the questions of a turn go: to the pool that runs it.
func (t *turn) answerSubject(space subjects.Space) string {
	return space.In(t.pool(space), events.KindToolCallResponse, t.App, t.Workflow, t.Chat)
}

// pool is where the message of the turn came from.
func (t *turn) pool(space subjects.Space) string { return poolOf(space, t.m.Subject) }

// poolOf is the pool of an inbound subject, the default one of any other subject.
func poolOf(space subjects.Space, subject string) string {
	if in, ok := space.ParseIn(subject); ok {
		return in.Pool
	}
	return subjects.DefaultPool
}
