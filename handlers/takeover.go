package handlers

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// A turn that another worker has claimed continues from its claim: the tool and the arguments that
// the record names, whether the turn's own message is redelivered or an answer, an expiry or a
// resume takes it over. The manifests of this worker only say how to run that tool, and whether
// they still allow another run.

// taker is what these handlers make of the claim of another worker.
type taker Handlers

// Effect implements [idempotency.NewOwner].
func (k *taker) Effect(key subjects.Key, claim *idempotency.Record) (effect string, known bool) {
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

// takeUp continues a turn that its own message has taken over. All that the claim does not hold,
// such as a snapshot of the context variables, is still in the message.
func (h *Handlers) takeUp(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	return h.goOn(ctx, t.m, &events.Resume{TurnID: t.TurnID, Workflow: t.Workflow}, d, t.StructuredOutputReady)
}

// resumed goes on with a turn that the message of an answer, an expiry or a cancel has taken over
// after it was parked, or after the owner who was told has died: the decision is Run or Conclude,
// and the message is the lease of the turn until it has ended or is parked again.
func (h *Handlers) resumed(ctx context.Context, m *message, d idempotency.Decision) inbound.Disposition {
	if d.Action == idempotency.Run {
		h.Metrics.Resumed.Inc()
	}
	return h.goOn(ctx, m, &events.Resume{}, d, nil)
}

// goOn does what the journal has decided for a turn that another worker has claimed. Event is the
// turn's own message if that has taken it over, else nil.
func (h *Handlers) goOn(ctx context.Context, m *message, e *events.Resume, d idempotency.Decision, event *events.StructuredOutputReady) inbound.Disposition {
	t, call := restore(m, e, d.Turn, event)
	if call == nil { // whatever the headers say, it is never run
		return h.conclude(t, d, events.CodeStateCorrupt)
	}
	h.Logger.Info("turn resumed", "workflow", t.Workflow, "chat", t.Chat, "turn", t.CallID, "action", d.Action.String(),
		"code", d.Code, "epoch", d.Hold.Epoch)
	t.Binding = h.Bindings().Bound(call.WorkflowName, call.Agent, call.ToolName)
	if d.Action == idempotency.EndTurn {
		return h.conclude(t, d, d.Code)
	}
	return h.rerun(ctx, t, d, call)
}

// restore makes a turn of what its claim says. The call is nil when the claim cannot be read
// or does not belong under its key; then the ids are those of the resume and the key.
func restore(m *message, e *events.Resume, held *idempotency.Turn, event *events.StructuredOutputReady) (*turn, *events.ToolCall) {
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

// rerun enters the tool of the claim again, with the arguments of the claim. A tool that this
// worker does not have (any more) ends as unknown_tool; arguments that are gone end as interrupted.
func (h *Handlers) rerun(ctx context.Context, t *turn, d idempotency.Decision, call *events.ToolCall) inbound.Disposition {
	stuck := func(code events.Code, why string, err error) inbound.Disposition {
		h.often(t.m, slog.LevelWarn, "the turn cannot run again", string(code), "code", code, "why", why, "workflow", throttle.Cut(t.Workflow), "tool", call.ToolName,
			"chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
		t.stuck = why
		return h.conclude(t, d, code)
	}
	if t.Binding == nil {
		if h.Bindings().WorkflowDigest(call.WorkflowName) == "" { // it was removed just now
			t.m.turns = []subjects.Key{t.Key}
			return h.giveLeaseBack(t.m, true)
		}
		return stuck(events.CodeUnknownTool, "no manifest has its tool", nil)
	}
	err := h.findTool(t)
	if err != nil {
		return stuck(events.CodeUnknownTool, "no tool", err)
	}
	if t.effectUnknown {
		t.Effect = bindings.Effect(d.Hold.Effect)
	}
	if d.Hold.Stricter(string(t.Effect)) { // the manifests have changed since the turn was taken over
		return stuck(events.CodeInterrupted, "its effect is "+string(t.Effect)+" now", nil)
	}
	reading, done := store.Context(t.m.Held, ctx)
	t.args, err = h.Blobs.Object(reading, t.Key, events.KindToolCall, call.Payload.ToolArgs)
	if err == nil {
		err = run.Restore(reading, h.Blobs, &t.Turn, d.Turn.State())
	}
	done()
	switch {
	case errors.Is(err, store.ErrBlobGone), errors.Is(err, run.ErrDamagedState):
		return stuck(events.CodeInterrupted, "no arguments", err)
	case err != nil:
		return h.comesBack(t, "what the turn goes on with cannot be read", err)
	}
	return h.invoke(ctx, t, d)
}

// What becomes of a message whose turn needs no run: another message has claimed it, or it has ended.

// damagedEnd keeps the message of a turn whose response cannot be read. Nothing can be stored in
// its place, and readers are told by the request API; the tool is not entered (again).
func (h *Handlers) damagedEnd(t *turn) inbound.Disposition {
	h.often(t.m, slog.LevelError, "the response of a turn cannot be read; its message becomes a dead letter", "", "key", t.Key.String())
	return h.dead(t.m, deadletter.ReasonStateCorrupt, idempotency.ErrDamaged)
}

// anothers handles a message whose turn another message has claimed.
func (h *Handlers) anothers(ctx context.Context, t *turn) inbound.Disposition {
	if d, copied := h.resumeCopy(ctx, t.m, t.Key, t.StructuredOutputReady); copied {
		return d
	}
	return h.duplicate(t)
}

// late acknowledges a message whose turn has its response.
func (h *Handlers) late(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	if d.Code == events.CodeStateCorrupt {
		return h.damagedEnd(t)
	}
	if err := h.mergeMissing(t.m.Held, ctx, t.m, d.End); err != nil {
		return h.comesBack(t, "the context changes of a response are not merged yet", err)
	}
	h.Journal.NoteFinished(t.ref, h.Now())
	return h.duplicate(t)
}

// duplicate acknowledges a message whose turn is somebody else's or has ended.
func (h *Handlers) duplicate(t *turn) inbound.Disposition {
	h.Metrics.Duplicates.Inc()
	h.Logger.Debug("duplicate", "chat", t.Chat, "turn", t.CallID, "seq", t.m.Lease.Seq)
	return inbound.Acked()
}

// staleFor is how long after a response a read that does not find what was stored before it is taken for a stale one.
const staleFor = 5 * time.Minute

// ended acknowledges a message that has nothing (more) to do for its turn, once what the response
// of the turn changes in the context variables is merged.
func (h *Handlers) ended(ctx context.Context, m *message, d idempotency.Decision) inbound.Disposition {
	if err := h.mergeMissing(m.Held, ctx, m, d.End); err != nil {
		return h.undecided(m, "the context changes of a response are not merged yet", err)
	}
	return inbound.Acked()
}

// endedByOther acknowledges the message of a turn whose response is another run's, once its changes are merged: the worker
// that stored it may have died, and this message may be the last one of the turn.
func (h *Handlers) endedByOther(ctx context.Context, t *turn) inbound.Disposition {
	end, err := h.Journal.End(ctx, t.Key)
	switch {
	case errors.Is(err, idempotency.ErrNotFound): // it has expired, or was purged
		return inbound.Acked()
	case err == nil:
		err = h.mergeMissing(ctx, t.m.tools, t.m, &end)
	}
	if err != nil {
		return h.comesBack(t, "the context changes of a response are not merged yet", err)
	}
	h.Journal.NoteFinished(t.ref, h.Now())
	return inbound.Acked()
}

// mergeMissing merges the context changes that a stored response names, unless they are: the
// worker that stored it may have died before it could. End is nil for a turn that has not ended. The changes are older
// than their response, so a read that finds the response alone may be stale, and is repeated for a while, when the
// message is delivered again.
//
// It reads and writes as long as ctx lives, and what is not decided soon ends with the tools of the worker.
func (h *Handlers) mergeMissing(ctx, tools context.Context, m *message, end *idempotency.Record) error {
	if end == nil || !query.NamesContext(end) {
		return nil
	}
	r := query.Response(end)
	found, err := h.Journal.DeltaOf(ctx, end)
	switch {
	case errors.Is(err, idempotency.ErrDamaged):
		return h.merged(variables.DamagedDelta(err), r.ChatID, r.CallID)
	case errors.Is(err, idempotency.ErrNotFound) && h.serverNow(m).Sub(end.Time) > staleFor: // it has expired, or was purged
		return nil
	case err != nil:
		return err
	}
	d, err := variables.DecodeDelta(found.Data)
	if err != nil {
		return h.merged(err, r.ChatID, r.CallID)
	}
	writing, done := store.Context(ctx, tools)
	defer done()
	return h.merged(h.Variables.Merge(writing, r.AppID, r.ChatID, found.Seq, d), r.ChatID, r.CallID)
}

// merged judges what came of a merge after the response was stored. That the changes can never be
// merged, though they could be staged, is for an operator to know: the message cannot help.
func (h *Handlers) merged(err error, chat, turn string) error {
	if err == nil || !store.Decided(err) {
		return err
	}
	h.Logger.Error("context changes that a response names cannot be merged; they stay in the journal", "chat", chat, "turn", turn, "err", events.LogText(err))
	return nil
}

// stopped is what becomes of a turn whose run was ended at the desk. What its tool has returned, if
// it has, does not count.
func (h *Handlers) stopped(t *turn, d idempotency.Decision, why error) inbound.Disposition {
	var coded *events.Error
	switch {
	case errors.Is(why, tools.ErrParked):
		return inbound.Acked()
	case errors.Is(why, ErrDraining) && d.Hold.Effect == string(bindings.EffectUnsafe): // without a lease
		return h.conclude(t, d, events.CodeInterrupted)
	case !errors.As(why, &coded):
		h.often(t.m, slog.LevelWarn, "the run is over; the message comes back", "", t.Attrs("why", events.LogText(why))...)
		return inbound.Left()
	case coded.Code == events.CodeCancelled, coded.Code == events.CodeStateCorrupt:
		return h.conclude(t, d, coded.Code)
	}
	h.often(t.m, slog.LevelWarn, "the turn ends at a question; its response says how", "", t.Attrs("code", coded.Code)...)
	r := t.response()
	r.ToolName = t.Binding.Tool
	fail(r, coded.Code, events.Clip(coded.Msg))
	return h.end(t, d.Hold, r)
}
