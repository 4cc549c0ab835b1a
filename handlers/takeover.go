package handlers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/variables"
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
// of the context variables or the message that has made the turn, is in the message.
func (h *Handlers) continueOwn(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	return h.continueTurn(ctx, t.m, &events.Resume{TurnID: t.TurnID, Workflow: t.Workflow}, d, t)
}

// continueParked continues a turn that the message of an answer, an expiry or a cancel has taken over after it was
// parked, or after its owner was notified and died. If the decision is Run, the message is the lease of the turn until it has
// ended or is parked again.
func (h *Handlers) continueParked(ctx context.Context, m *message, d idempotency.Decision) inbound.Disposition {
	if d.Action == idempotency.Run {
		h.Metrics.Resumed.Inc()
	}
	return h.continueTurn(ctx, m, &events.Resume{}, d, nil)
}

// continueTurn carries out the decision of the journal on a turn that was claimed before. Own is the turn as its own message has
// it if that has taken it over, else nil.
func (h *Handlers) continueTurn(ctx context.Context, m *message, e *events.Resume, d idempotency.Decision, own *turn) inbound.Disposition {
	t, call := turnOfClaim(m, e, d.Turn, own)
	if call == nil { // whatever the headers are, it is never run
		return h.endWithCode(t, d, events.CodeStateCorrupt)
	}
	h.Logger.Info("turn resumed", "workflow", t.Workflow, "chat", t.Chat, "turn", t.CallID, "action", d.Action.String(),
		"code", d.Code, "epoch", d.Hold.Epoch)
	t.Binding = h.Bindings().Bound(call.WorkflowName, call.Agent, call.ToolName)
	if d.Hold.Trace == "" {
		d.Hold.Trace = t.claimed.Meta.Trace
	}
	if d.Action == idempotency.EndTurn {
		return h.endWithCode(t, d, d.Code)
	}
	return h.continueTool(ctx, t, d, call)
}

// turnOfClaim returns a turn as its claim specifies it. The call is nil when the claim cannot be read or does not belong
// under its key; then the ids are from the resume and the key.
func turnOfClaim(m *message, e *events.Resume, held *idempotency.Turn, own *turn) (*turn, *events.ToolCall) {
	key, claim := held.Key, held.Claim
	var event *events.StructuredOutputReady
	var origin *chatMessage
	if own != nil {
		event, origin = own.StructuredOutputReady, own.origin
	}
	call, reused := query.Call(key, claim)
	if call == nil {
		ids := query.IDs(key, e.TurnID)
		event := &events.StructuredOutputReady{TurnID: ids, Workflow: e.Workflow}
		return &turn{Turn: turnOn(m, event, key, events.CallID(ids, key.Turn)), m: m, origin: origin}, nil
	}
	if event == nil {
		event = &events.StructuredOutputReady{
			TurnID:   events.TurnID{App: call.AppID, Chat: call.ChatID, Run: call.RunID, Turn: call.Turn},
			Workflow: call.WorkflowName, Agent: call.Agent, AutoToolMode: true,
			UserID: call.UserID, TurnSequence: call.TurnSequence, CorrectionOf: call.CorrectionOf, ResumeOf: call.ResumeOf, Rerun: call.Rerun,
		}
	} else if event.ResumeOf != "" { // its message has only the turn that it retries
		event.Agent, event.UserID, event.TurnSequence = call.Agent, call.UserID, call.TurnSequence
	}
	t := &turn{Turn: turnOn(m, event, key, events.CallID(event.TurnID, key.Turn)), m: m, origin: origin}
	t.Depth, t.usage = call.Depth, call.Usage
	if reused {
		t.CallID = events.QualifiedCallID(event.Turn, key.Turn)
	}
	if sum, err := hex.DecodeString(claim.Meta.Fingerprint); err == nil {
		copy(t.fingerprint[:], sum)
	}
	t.hash, t.ref = claim.Meta.Fingerprint, idempotency.RefOf(t.Name, t.fingerprint)
	t.closes, t.claimed = claim.Meta.Effect == string(events.EffectProgram), claim
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
			t.m.mayHold = []subjects.Key{t.Key}
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

// Messages that are acknowledged although they end no turn: duplicates, messages of turns that have ended, and messages
// whose turn continues without them.
//
// An acknowledgement of any delivery removes the message from the stream, also one that a later delivery holds as the
// lease of a turn that runs. So before a message is acknowledged whose turn has not ended, the journal is asked whether
// a later delivery has claimed the turn or taken it over ([Handlers.ackUnlessLaterDelivery]). A flood of new messages
// costs no such read, see [Handlers.onlyDelivery].

// keys are the keys under which a turn may have been claimed: its workflow may have run reused keys when it was.
func (t *turn) keys() []subjects.Key { return []subjects.Key{t.Key, t.reusedKey()} }

// turnLeases returns the current leases of the turns that a message may hold.
func (h *Handlers) turnLeases(m *message) ([]idempotency.Lease, error) {
	if len(m.mayHold) == 0 {
		return nil, nil
	}
	leases, err := h.Journal.Leases(m.Held, m.mayHold...)
	if err != nil {
		return nil, fmt.Errorf("find the delivery that holds the turn: %w", err)
	}
	return leases, nil
}

// onlyDelivery reports whether a message has been delivered once and cannot have been redelivered by now. The server
// redelivers when an ack wait is over, and a new leader of the consumer, or a restarted server, counts it from when the
// stream took the message, unless there was a heartbeat. So a message that has waited in the stream may have been
// redelivered however fresh this delivery is. An ack wait that an operator lowers by hand can be known too late.
func (h *Handlers) onlyDelivery(m *message) bool {
	return m.Lease.Delivery == 1 && m.Fresh() && m.AckWait != nil && h.serverNow(m).Sub(m.Arrived) < m.AckWait()/2
}

// ackUnlessLaterDelivery acknowledges a message whose turn continues without it. It leaves a message that a later
// delivery holds, or may hold.
func (h *Handlers) ackUnlessLaterDelivery(m *message) inbound.Disposition {
	if h.onlyDelivery(m) {
		return inbound.Acked()
	}
	leases, err := h.turnLeases(m)
	return h.ackUnlessLaterLease(m, leases, err)
}

// ackUnlessLaterLease is [Handlers.ackUnlessLaterDelivery] with the leases, or why they are not known.
func (h *Handlers) ackUnlessLaterLease(m *message, leases []idempotency.Lease, err error) inbound.Disposition {
	later := slices.ContainsFunc(leases, func(l idempotency.Lease) bool { return l.After(m.Lease) })
	switch {
	case err != nil:
		return h.redeliver(m, "a later delivery may hold its turn", err)
	case later || !m.Fresh():
		h.Logger.Debug("a later delivery may hold the message; not acknowledged", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery)
		return inbound.Left()
	}
	return inbound.Acked()
}

// turnOfAnswer returns the keys of the turn that an answer may name; none if only its question leads to it.
func turnOfAnswer(r *events.ToolCallResponse) []subjects.Key {
	callID, ask, ok := events.ParseQuestionID(r.ToolCallID)
	if !ok {
		return nil
	}
	var keys []subjects.Key
	for _, ref := range query.RefTo(r.TurnID, callID, ask).Refs() {
		if _, qualified := ref.Qualified(); !qualified {
			key, _, _ := ref.Exact()
			keys = append(keys, key.OfTurn())
		}
	}
	return keys
}

// claimedByOther handles a message whose turn another message has claimed.
func (h *Handlers) claimedByOther(ctx context.Context, t *turn) inbound.Disposition {
	if d, resumed := h.resumeDeferred(ctx, t.m, t.Key, t); resumed {
		return d
	}
	return h.ackDuplicate(t)
}

// ackEnded acknowledges a message whose turn has its response.
func (h *Handlers) ackEnded(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	if d.Code == events.CodeStateCorrupt {
		return h.deadDamagedResponse(t)
	}
	if done := h.mergeAndAck(t.m.Held, ctx, t, d.End); done.Do != inbound.Ack {
		return done
	}
	return h.ackDuplicate(t)
}

// ackDuplicate acknowledges a message whose turn another message holds, or has ended.
func (h *Handlers) ackDuplicate(t *turn) inbound.Disposition {
	h.Metrics.Duplicates.Inc()
	h.Logger.Debug("duplicate", "chat", t.Chat, "turn", t.CallID, "seq", t.m.Lease.Seq)
	return inbound.Acked()
}

// staleFor is how long after a response a read that does not find a record older than the response is treated as stale.
const staleFor = 5 * time.Minute

// notHandedOff is why a message is redelivered whose turn has ended.
const notHandedOff = "the speaker after the message of a turn could not be stored"

// notMerged is why a message is redelivered whose turn has ended.
const notMerged = "the context changes of a response are not merged yet"

// ackMerged acknowledges an answer, expiry, cancel or resume that has nothing (more) to do for its turn, once the context
// changes of a response are merged.
func (h *Handlers) ackMerged(ctx context.Context, m *message, d idempotency.Decision) inbound.Disposition {
	if err := h.mergeMissing(m.Held, ctx, m, d.End); err != nil {
		return h.redeliver(m, notMerged, err)
	}
	if d.End != nil && d.Turn != nil {
		return h.complete(m, nil, d.Turn.Key, d.Turn.Claim, func() *events.ToolResponse { return query.Response(d.End) })
	}
	return inbound.Acked()
}

// ackLateResult acknowledges the message of a turn that another run has ended, once the changes of that run are merged:
// the worker that stored its response may have died, and this message may be the last one of the turn.
func (h *Handlers) ackLateResult(ctx context.Context, t *turn) inbound.Disposition {
	end, err := h.Journal.End(ctx, t.Key)
	switch {
	case errors.Is(err, idempotency.ErrNotFound): // it has expired, or was purged
		return inbound.Acked()
	case err != nil:
		return h.redeliverTurn(t, notMerged, err)
	}
	return h.mergeAndAck(ctx, t.m.tools, t, &end)
}

// mergeAndAck acknowledges the message of a turn that ended with a stored response, once its context changes are merged. End is nil for a
// turn that is parked: it continues without this message.
func (h *Handlers) mergeAndAck(ctx, tools context.Context, t *turn, end *idempotency.Record) inbound.Disposition {
	if err := h.mergeMissing(ctx, tools, t.m, end); err != nil {
		return h.redeliverTurn(t, notMerged, err)
	}
	if end == nil {
		return inbound.Acked()
	}
	if d := h.complete(t.m, t, t.Key, t.claimed, func() *events.ToolResponse { return query.Response(end) }); d.Do != inbound.Ack {
		return d
	}
	h.Journal.NoteEnded(t.ref, h.Now())
	return inbound.Acked()
}

// mergeMissing merges the context changes that a stored response names, unless they are merged: the worker that stored
// it may have died before it could. End is nil for a turn that has not ended. The changes are older than their
// response, so a read that finds only the response may be stale, and is repeated with the next delivery for a while.
//
// It reads and writes until ctx ends, and retries until tools end.
func (h *Handlers) mergeMissing(ctx, tools context.Context, m *message, end *idempotency.Record) error {
	if end == nil || !query.NamesContext(end) {
		return nil
	}
	r := query.Response(end)
	found, err := h.Journal.DeltaOf(ctx, end)
	switch {
	case errors.Is(err, idempotency.ErrDamaged):
		return h.mergeOutcome(variables.DamagedDelta(err), r.ChatID, r.CallID)
	case errors.Is(err, idempotency.ErrNotFound) && h.serverNow(m).Sub(end.Time) > staleFor: // it has expired, or was purged
		return nil
	case err != nil:
		return err
	}
	d, err := variables.DecodeDelta(found.Data)
	if err != nil {
		return h.mergeOutcome(err, r.ChatID, r.CallID)
	}
	writing, done := store.Context(ctx, tools)
	defer done()
	return h.mergeOutcome(h.Variables.Merge(writing, r.AppID, r.ChatID, found.Seq, d), r.ChatID, r.CallID)
}

// mergeOutcome returns the error of a merge after the response was stored, nil if a redelivery cannot help. Changes that
// can never be merged, although they could be staged, are logged for the operator.
func (h *Handlers) mergeOutcome(err error, chat, turn string) error {
	if err == nil || !store.Decided(err) {
		return err
	}
	h.Logger.Error("context changes that a response names cannot be merged; they stay in the journal", "chat", chat, "turn", turn, "err", events.LogText(err))
	return nil
}
