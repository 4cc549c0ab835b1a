package handlers

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// A turn that was claimed before continues from its claim: with the tool and the arguments of that record, whether the
// turn's own message is redelivered or an answer, an expiry or a resume takes it over. The manifests of this worker only
// specify how to run that tool, and whether they still allow another run.
//
//	continueOwn (its own message), continueParked (answer, expiry, cancel), resumeTurn (resume)
//	→ continueTurn → continueTool → invoke (turn.go, step 7), or endWithCode (end.go)

// newOwner implements [idempotency.NewOwner]: what the manifests of this worker permit for the claim of another one.
type newOwner Handlers

// Effect implements [idempotency.NewOwner].
func (k *newOwner) Effect(key subjects.Key, claim *idempotency.Record) (effect string, known bool) {
	h := (*Handlers)(k)
	call, _ := query.Call(key, claim)
	if call == nil {
		return "", true // the turn ends as state_corrupt, here or elsewhere
	}
	set := h.Bindings()
	if set.WorkflowDigest(call.WorkflowName) == "" {
		return "", false
	}
	t := &turn{Turn: run.Turn{Binding: set.Bound(call.WorkflowName, call.Agent, call.ToolName)}}
	if t.Binding == nil || h.findTool(t) != nil {
		return "", true // the turn ends as unknown_tool
	}
	if t.effectUnknown { // nothing forbids what the claim allows
		return "", true
	}
	return string(t.Effect), true
}

// continueOwn continues a turn that its own message has taken over: data that the claim does not hold, such as a snapshot
// of the context variables, is in the message.
func (h *Handlers) continueOwn(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	return h.continueTurn(ctx, t.m, &events.Resume{TurnID: t.TurnID, Workflow: t.Workflow}, d, t.StructuredOutputReady)
}

// continueParked continues a turn that the message of an answer, an expiry or a cancel has taken over after it was
// parked, or after its owner was notified and died. The decision is Run or EndTurn, and the message is the lease of the
// turn until it has ended or is parked again.
func (h *Handlers) continueParked(ctx context.Context, m *message, d idempotency.Decision) inbound.Disposition {
	if d.Action == idempotency.Run {
		h.Metrics.Resumed.Inc()
	}
	return h.continueTurn(ctx, m, &events.Resume{}, d, nil)
}

// continueTurn carries out the decision of the journal on a turn that was claimed before. Event is the turn's own message
// if that has taken it over, else nil.
func (h *Handlers) continueTurn(ctx context.Context, m *message, e *events.Resume, d idempotency.Decision, event *events.StructuredOutputReady) inbound.Disposition {
	t, call := turnOfClaim(m, e, d.Turn, event)
	if call == nil { // whatever the headers say, it is never run
		return h.endWithCode(t, d, events.CodeStateCorrupt)
	}
	h.Logger.Info("turn resumed", "workflow", t.Workflow, "chat", t.Chat, "turn", t.CallID, "action", d.Action.String(),
		"code", d.Code, "epoch", d.Hold.Epoch)
	t.Binding = h.Bindings().Bound(call.WorkflowName, call.Agent, call.ToolName)
	if d.Action == idempotency.EndTurn {
		return h.endWithCode(t, d, d.Code)
	}
	return h.continueTool(ctx, t, d, call)
}

// turnOfClaim returns a turn as its claim specifies it. The call is nil when the claim cannot be read or does not belong
// under its key; then the ids are from the resume and the key.
func turnOfClaim(m *message, e *events.Resume, held *idempotency.Turn, event *events.StructuredOutputReady) (*turn, *events.ToolCall) {
	key, claim := held.Key, held.Claim
	call, reused := query.Call(key, claim)
	if call == nil {
		ids := query.IDs(key, e.TurnID)
		event := &events.StructuredOutputReady{TurnID: ids, Workflow: e.Workflow}
		return &turn{Turn: turnOn(m, event, key, events.CallID(ids, key.Turn)), m: m}, nil
	}
	if event == nil {
		event = &events.StructuredOutputReady{
			TurnID:   events.TurnID{App: call.AppID, Chat: call.ChatID, Run: call.RunID, Turn: call.Turn},
			Workflow: call.WorkflowName, Agent: call.Agent, AutoToolMode: true,
			UserID: call.UserID, TurnSequence: call.TurnSequence, CorrectionOf: call.CorrectionOf,
		}
	}
	t := &turn{Turn: turnOn(m, event, key, events.CallID(event.TurnID, key.Turn)), m: m}
	if reused {
		t.CallID = events.QualifiedCallID(event.Turn, key.Turn)
	}
	if sum, err := hex.DecodeString(claim.Meta.Fingerprint); err == nil {
		copy(t.fingerprint[:], sum)
	}
	t.hash, t.ref = claim.Meta.Fingerprint, idempotency.RefOf(t.Name, t.fingerprint)
	return t, call
}

// continueTool enters the tool of the claim again, with the arguments of the claim. A turn whose tool this worker does not
// have (any more) ends as unknown_tool, a turn whose arguments are gone as interrupted.
func (h *Handlers) continueTool(ctx context.Context, t *turn, d idempotency.Decision, call *events.ToolCall) inbound.Disposition {
	end := func(code events.Code, why string, err error) inbound.Disposition {
		h.logThrottled(t.m, slog.LevelWarn, "the turn cannot run again", string(code), "code", code, "why", why, "workflow", throttle.Cut(t.Workflow), "tool", call.ToolName,
			"chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
		t.blocked = why
		return h.endWithCode(t, d, code)
	}
	if t.Binding == nil {
		if h.Bindings().WorkflowDigest(call.WorkflowName) == "" { // it was removed just now
			t.m.turns = []subjects.Key{t.Key}
			return h.requeueLease(t.m, true)
		}
		return end(events.CodeUnknownTool, "no manifest has its tool", nil)
	}
	err := h.findTool(t)
	if err != nil {
		return end(events.CodeUnknownTool, "no tool", err)
	}
	if t.effectUnknown {
		t.Effect = bindings.Effect(d.Hold.Effect)
	}
	if d.Hold.Stricter(string(t.Effect)) { // the manifests have changed since the turn was taken over
		return end(events.CodeInterrupted, "its effect is "+string(t.Effect)+" now", nil)
	}
	reading, done := store.Context(t.m.Held, ctx)
	t.args, err = h.Blobs.Object(reading, t.Key, events.KindToolCall, call.Payload.ToolArgs)
	if err == nil {
		err = run.Restore(reading, h.Blobs, &t.Turn, d.Turn.State())
	}
	done()
	switch {
	case errors.Is(err, store.ErrBlobGone), errors.Is(err, run.ErrDamagedState):
		return end(events.CodeInterrupted, "no arguments", err)
	case err != nil:
		return h.redeliverTurn(t, "the arguments or the state of the turn cannot be read", err)
	}
	return h.invoke(ctx, t, d)
}
