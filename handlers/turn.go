package handlers

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/subjects"
)

// turn is one structured_output_ready message on its way through the nine steps.
type turn struct {
	run.Turn

	m           *message
	data        events.Canonical // structured data
	fingerprint [sha256.Size]byte
	hash        string // of the fingerprint, in hex
	ref         idempotency.TurnRef

	effectUnknown bool // only the tool can report its effect, and has not yet
	args          map[string]any
	argsJSON      events.Canonical
	reject        *rejection    // why the tool is not entered, nil if it is
	waited        bool          // this worker claimed the turn and has not entered its tool
	stuck         string        // why this worker cannot enter the tool again, "" if it can
	attempts      int           // of its tool by this worker, once it was entered
	ran           time.Duration // of all of them
	took          int64         // bytes of the store, counted for it
	// merge merges what its tool has changed in the context variables, once the response is stored;
	// nil if it has changed nothing
	merge func(ctx context.Context) error
}

// turn handles the message that starts a turn.
func (h *Handlers) turn(ctx context.Context, m *message, body *events.Message) inbound.Disposition {
	// 1. Decode: only a message that names its chat and turn can be answered.
	event, err := body.Turn()
	if err != nil {
		return h.undecoded(ctx, m, err)
	}
	if !event.AutoToolMode {
		h.Metrics.NotATurn.Inc()
		return inbound.Acked()
	}
	t := newTurn(m, event)
	t.seal(body.Seal(event))
	return h.admit(ctx, t)
}

// admit handles a turn that has been decoded.
func (h *Handlers) admit(ctx context.Context, t *turn) inbound.Disposition {
	// 2. Admit: right subject, not ended already, not too old.
	m := t.m
	if err := h.checkSubject(m, t.StructuredOutputReady); err != nil {
		return h.dead(m, deadletter.ReasonSubjectMismatch, err)
	}
	if h.Journal.Finished(t.ref, h.Now()) {
		return h.duplicate(t)
	}
	if m.Lease.Delivery > 2*maxDeliveries && h.counted(m) {
		if d, given := h.givenUp(t); given {
			return d
		}
	}
	switch age := h.age(m); {
	case age > h.MaxEventAge:
		t.reject = rejectTooOld(age, h.MaxEventAge)
	case m.Lease.Delivery > maxDeliveries && h.counted(m):
		t.reject = rejectUndeliverable(m.Lease.Delivery)
	case t.reject != nil: // it cannot be decoded
	default:
		// 3. Resolve the tool, 4. validate the data, 5. map it to the tool's arguments.
		if wait := h.prepare(t); wait > 0 && h.inGrace(m) {
			m.turns = t.keys()
			if d, back := h.giveBack(m, wait); back {
				return d
			}
		}
	}
	if t.reject != nil && t.Binding != nil && t.Binding.CompatSilent {
		claimed, err := h.claimedBefore(t)
		switch {
		case err != nil:
			return h.unclaimed(t, err)
		case !claimed:
			h.Metrics.Turn(t.Binding, string(t.reject.code))
			return inbound.Acked()
		}
	}

	// 6. Claim: the record is the event chat.tool_call.
	if !m.Fresh() {
		return inbound.Left()
	}
	if d, back := h.whileFull(t, h.claimedBefore); back {
		return d
	}
	t.Hit(failpoint.BeforeClaim)
	decision, err := h.claimPlaced(ctx, t)
	h.noRoomTaken(t, decision, err)
	if err != nil {
		return h.unclaimed(t, err)
	}
	return h.claimed(ctx, t, decision)
}

// claimed goes on with a turn as its claim, or what stood in its place, decides.
func (h *Handlers) claimed(ctx context.Context, t *turn, decision idempotency.Decision) inbound.Disposition {
	if decision.Turn != nil && decision.Hold.Epoch > 1 {
		h.Metrics.Takeovers.Inc()
	}
	switch decision.Action {
	case idempotency.Run:
		if decision.Turn != nil {
			return h.takeUp(ctx, t, decision)
		}
		t.Hit(failpoint.AfterClaim)
		return h.invoke(ctx, t, decision)
	case idempotency.EndTurn:
		if decision.Turn != nil {
			return h.takeUp(ctx, t, decision)
		}
		return h.conclude(t, decision, decision.Code)
	case idempotency.Requeue:
		t.m.turns = t.keys()
		return h.giveLeaseBack(t.m, true)
	case idempotency.Conflict:
		return h.conflict(t)
	case idempotency.Done:
		return h.late(ctx, t, decision)
	case idempotency.Duplicate, idempotency.Signalled:
		return h.anothers(ctx, t)
	case idempotency.Leave:
	}
	return inbound.Left()
}

func newTurn(m *message, event *events.StructuredOutputReady) *turn {
	key := subjects.TurnKey(event.App, event.Chat, event.Run, event.Turn)
	return &turn{Turn: turnOn(m, event, key, events.CallID(event.TurnID, key.Turn)), m: m}
}

// turnOn returns a turn as far as its event and the message that is its lease specify it.
func turnOn(m *message, event *events.StructuredOutputReady, key subjects.Key, callID string) run.Turn {
	return run.Turn{
		StructuredOutputReady: event, Key: key, Name: key.String(), CallID: callID,
		Message: run.Message{Held: m.Held, Slot: m.Slot, Subject: m.Subject, Arrived: m.Arrived, Clock: m.clock},
	}
}

// seal notes the data of a turn in the form of records, and all that tells it from other data.
func (t *turn) seal(data events.Canonical, fingerprint [sha256.Size]byte) {
	t.data, t.fingerprint, t.hash, t.ref = data, fingerprint, events.Hex(fingerprint), idempotency.RefOf(t.Name, fingerprint)
}

// prepare resolves, validates and maps. It sets t.reject when the tool cannot be entered, and
// returns how long to wait when another worker may know the workflow.
func (h *Handlers) prepare(t *turn) (wait time.Duration) {
	var err error
	t.Binding, err = h.Bindings().Resolve(t.Workflow, t.Agent, t.Model)
	switch {
	case errors.Is(err, bindings.ErrUnknownWorkflow):
		t.reject = reject(events.CodeNoBinding, err)
		return h.handOver(t)
	case err != nil:
		t.reject = reject(events.CodeNoBinding, err)
		return 0
	}
	if err = h.findTool(t); err != nil {
		t.reject = reject(events.CodeUnknownTool, err)
		return 0
	}
	args, changed, violations := run.Arguments(t.Binding, t.StructuredOutputReady, t.Data)
	if len(violations) > 0 {
		t.reject = rejectInvalid(t, violations)
		return 0
	}
	t.args, t.argsJSON = args, t.data
	if changed {
		if t.argsJSON, err = events.Canonicalize(t.args, len(t.m.Data)); err != nil {
			t.reject = reject(events.CodeTooLarge, tooLarge("arguments", err))
		}
	}
	return 0
}

// invoke enters the tool and stores what came of it.
func (h *Handlers) invoke(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	// 7. Invoke: nothing but this enters a tool.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begun := h.serverNow(t.m)
	keepInProgress(t.m, d.Hold.Effect, begun)
	r := h.runs.Start(ctx, stop, &t.Turn, d, begun)
	defer h.runs.Remove(r)
	if h.cancelled.Has(t.Name, h.Now()) && h.isCancelled(t.m.Held, d.Hold) {
		stop(errCancelled)
	}
	call, err := h.toolCall(ctx, t, r)
	if err != nil {
		return h.withoutContext(t, d, err)
	}
	h.Metrics.InFlight.Inc()
	out := h.Engine.Do(ctx, r.Invocation(call))
	t.Hit(failpoint.AfterTool)
	run.Scrub(call.Secrets, &out)
	h.Metrics.InFlight.Dec()
	h.Metrics.Tool(t.Binding, &out)
	if t.waited = !out.Entered; out.Entered {
		t.attempts, t.ran = out.Attempts, out.Duration
	}
	hold, over := r.Close()
	d.Hold = hold
	switch {
	case over != nil:
	case out.Stopped != nil:
		h.often(t.m, slog.LevelInfo, "tool stopped", "", t.Attrs("why", out.Stopped, "entered", out.Entered)...)
	case out.Err != nil:
		h.logFailure(t, out)
	}
	unsafe := d.Hold.Effect == string(bindings.EffectUnsafe)
	switch {
	case over != nil:
		return h.stopped(t, d, over)
	case errors.Is(out.Stopped, ErrDraining) && unsafe:
		return h.conclude(t, d, events.CodeInterrupted)
	case errors.Is(out.Stopped, ErrDraining) && out.Abandoned:
		return inbound.Left() // its tool still runs
	case errors.Is(out.Stopped, ErrDraining):
		return inbound.NakAfter(0)
	case out.Stopped != nil, h.cancelledSince(t, d, out.Waited+out.Duration+out.Paused):
		return h.conclude(t, d, events.CodeCancelled)
	}
	return h.respond(t, d.Hold, out)
}

// finish stores the response. The first stored response wins; a result that comes second is
// dropped and counted.
func (h *Handlers) finish(ctx context.Context, t *turn, hold idempotency.Hold, r *events.ToolResponse) inbound.Disposition {
	// 8. Finish: the record is the event chat.tool_response.
	buffer := h.buffers.get()
	defer h.buffers.put(buffer)
	event, err := events.AppendToolResponse((*buffer)[:0], r, h.Now())
	if err != nil {
		fail(r, events.CodeToolError, unwritable(r.ToolName, err))
		if event, err = events.AppendToolResponse((*buffer)[:0], r, h.Now()); err != nil {
			h.often(t.m, slog.LevelError, "the response cannot be encoded; the message comes back", "", "turn", throttle.Cut(t.CallID), "err", err)
			return inbound.Left()
		}
	}
	*buffer = event
	stored, err := h.Journal.Finish(ctx, hold, event)
	if errors.Is(err, idempotency.ErrRefused) && r.Code != events.CodeTooLarge {
		fail(r, events.CodeTooLarge, "The response of tool "+r.ToolName+" is too large to store.")
		return h.finish(ctx, t, hold, r)
	}
	if errors.Is(err, idempotency.ErrDamaged) {
		return h.damagedEnd(t)
	}
	if err != nil {
		h.often(t.m, slog.LevelWarn, "the response could not be stored; the message comes back", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
		return inbound.Left()
	}
	t.Hit(failpoint.AfterFinish)
	h.eraseSecrets(ctx, t)
	if !stored {
		d := h.endedByOther(ctx, t)
		if d.Do == inbound.Ack { // otherwise it may be tried again
			h.Metrics.LateResults.Inc()
			h.often(t.m, slog.LevelWarn, "the turn had a response already; the result is dropped", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "epoch", hold.Epoch)
		}
		return d
	}
	h.addRoom(t.Key.App, len(event))
	outcome := string(r.Code)
	if outcome == "" {
		outcome = r.Status
	}
	if t.Asked {
		h.runs.Complete(&t.Turn, events.RunEnded, "")
	}
	h.Metrics.Turn(t.Binding, outcome)
	h.Metrics.TurnSeconds.Observe(h.age(t.m).Seconds())
	if h.Logger.Enabled(ctx, slog.LevelDebug) {
		h.Logger.Debug("turn ended", "workflow", t.Workflow, "chat", t.Chat, "turn", t.CallID, "outcome", outcome,
			"epoch", hold.Epoch, "ms", r.DurationMS)
	}
	if t.merge != nil && len(r.ContextKeys) > 0 {
		if err := h.merged(t.merge(ctx), t.Chat, t.CallID); err != nil {
			return h.comesBack(t, "the context changes of a response are not merged yet", err)
		}
		t.Hit(failpoint.AfterMerge)
	}
	// 9. Acknowledge: the record is stored.
	h.Journal.NoteFinished(t.ref, h.Now())
	return inbound.Acked()
}

// How the end of a turn is stored. As long as the lease lasts, a write of unknown outcome is sent
// again. A lost lease does not end that: the response is a create, which harms no other worker however
// late it is, and the lease may have lapsed because no worker could reach the server.

// lastTry is how long a worker that has lost its lease tries to store how a turn ends without a result
// in hand: any other worker stores the same.
const lastTry = 10 * time.Second

// maxPending bounds the results of tools that a worker without a lease still tries to store. Each
// keeps its run and its slot.
const maxPending = 4096

// respond stores the outcome of a tool that was entered. It tries until the worker has ended its tools:
// without the result, a turn whose tool is unsafe ends as interrupted.
func (h *Handlers) respond(t *turn, hold idempotency.Hold, out engine.Outcome) inbound.Disposition {
	write := func(ctx context.Context) inbound.Disposition { return h.storeOutcome(ctx, t, hold, out) }
	if d, decided := underLease(t.m, write); decided {
		return d
	}
	defer h.pending.Add(-1)
	if h.pending.Add(1) > maxPending {
		h.often(t.m, slog.LevelError, "a result is dropped: too many wait for the server after their leases have ended", "", t.Attrs("limit", maxPending)...)
		return inbound.Left()
	}
	h.often(t.m, slog.LevelWarn, "the lease ended before the result was stored: it is tried until the worker stops", "", t.Attrs()...)
	ctx, done := afterLease(t.m, 0)
	defer done()
	return write(ctx)
}

// end stores the response of a turn whose tool has no outcome.
func (h *Handlers) end(t *turn, hold idempotency.Hold, r *events.ToolResponse) inbound.Disposition {
	write := func(ctx context.Context) inbound.Disposition { return h.finish(ctx, t, hold, r) }
	if d, decided := underLease(t.m, write); decided {
		return d
	}
	ctx, done := afterLease(t.m, lastTry)
	defer done()
	return write(ctx)
}

// underLease writes as long as the lease lasts. It reports false if the lease was, or is, lost and
// nothing is decided.
func underLease(m *message, write func(ctx context.Context) inbound.Disposition) (d inbound.Disposition, decided bool) {
	if m.Held.Err() != nil {
		return inbound.Left(), false
	}
	d = write(m.Held)
	return d, d.Do != inbound.Leave || m.Held.Err() == nil
}

// afterLease is the context of what does not need the lease. It ends soon after the worker has ended
// its tools, and after most, unless that is 0.
func afterLease(m *message, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, done := store.Context(context.WithoutCancel(m.Held), m.tools)
	if most == 0 {
		return ctx, done
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	return ctx, func() {
		cancel()
		done()
	}
}
