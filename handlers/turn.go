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
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
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
		// 7. Invoke, 8. finish: the record is the event chat.tool_response. 9. Ack.
		return h.run(ctx, t, decision)
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

// handOver is [Handlers.handOverDelay] of a turn of a workflow that is unknown here.
func (h *Handlers) handOver(t *turn) time.Duration {
	if t.m.offers() == 1 {
		h.often(t.m, slog.LevelWarn, "unknown workflow: the turn is offered to other workers", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID),
			"grace", h.grace(), "reason", t.reject.content)
	}
	return h.handOverDelay(t.m)
}

// claim asks the journal for the turn. One whose arguments no record can hold is rejected.
func (h *Handlers) claim(ctx context.Context, t *turn) (idempotency.Decision, error) {
	decision, err := h.claimOnce(ctx, t)
	if t.reject == nil && run.Unstorable(err) {
		t.reject = reject(events.CodeTooLarge, tooLarge("arguments", err))
		decision, err = h.claimOnce(ctx, t)
	}
	return decision, err
}

func (h *Handlers) claimOnce(ctx context.Context, t *turn) (idempotency.Decision, error) {
	buffer := h.buffers.get()
	defer h.buffers.put(buffer)
	event, err := h.callEvent(ctx, t, (*buffer)[:0])
	if err != nil {
		return idempotency.Decision{}, err
	}
	*buffer = event
	c := idempotency.Claim{
		Key: t.Key, Lease: t.m.Lease, Event: event,
		Fingerprint: t.hash, Trace: inbound.Trace(t.m.Header), NewOwner: (*taker)(h),
	}
	if t.reject != nil {
		c.RejectCode = string(t.reject.code)
	} else {
		c.Effect, c.Digest = string(t.Effect), t.Binding.Digest
	}
	return h.Journal.Claim(t.m.Held, c)
}

// run enters the tool and stores what came of it.
func (h *Handlers) run(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
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

// logFailure says that a tool failed, and where one panicked. Its own words may hold data of
// the turn: they are in the response.
func (h *Handlers) logFailure(t *turn, out engine.Outcome) {
	args := t.Attrs("code", out.Code, "attempts", out.Attempts)
	var panicked *tools.PanicError
	if errors.As(out.Err, &panicked) {
		args = append(args, "stack", string(panicked.Stack))
	}
	var file *target.FileError
	if errors.As(out.Err, &file) {
		args = append(args, "file", file.File, "why", file.Err)
	}
	var host *target.HostError
	if errors.As(out.Err, &host) {
		args = append(args, "host", host.Host)
	}
	h.often(t.m, slog.LevelWarn, "tool failed; its response says how", string(out.Code), args...)
}

// unclaimed decides on a message whose claim failed. Nothing was decided, so it comes back,
// except when the record can never be stored.
func (h *Handlers) unclaimed(t *turn, err error) inbound.Disposition {
	if errors.Is(err, idempotency.ErrRefused) {
		return h.dead(t.m, deadletter.ReasonTooLarge, err)
	}
	return h.comesBack(t, "the turn could not be claimed", err)
}
