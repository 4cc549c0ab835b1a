package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// The nine steps of a turn, and the functions that have them: 1 decode (turn), 2 admit (admit), 3 resolve, 4 validate and
// 5 map (prepare), 6 claim (admit), 7 invoke (invoke), 8 finish and 9 acknowledge (finish).
//
// If the tool of a turn must not run, one of the steps 1 to 5 sets t.reject. The turn is claimed like any other. Step 7 is
// skipped, and the response has the reason. Between 8 and 9, finish erases secret answers and merges what the tool has
// changed in the context variables; a turn whose changes are not merged yet is not acknowledged.
//
// A message that does not go through all steps leaves through one of these exits:
//   - acknowledged: an event without auto_tool_mode (turn), a rejected turn of a workflow that sends no response to failures
//     (rejectSilently), a turn that has ended (ackDuplicate, ackEnded), a turn that another message holds (claimedByOther)
//   - a dead letter: an event that names no turn or is on the wrong subject (deadLetter), a turn that no worker could claim
//     (deadIfUnclaimed), a key that was used with other data (conflict), a response that cannot be read (deadDamagedResponse)
//   - requeued: another worker may know the workflow (requeue, requeueLease), the store has no room (requeueWhileFull)
//   - continued from its claim, if this is a later delivery of the lease (continueOwn)
//   - left to its next delivery: another worker may own it, or a write is undecided (inbound.Left, claimFailed). A worker that
//     drains naks it immediately (inbound.NakAfter).

// turn is one structured_output_ready, plan_ready or retry message on its way through the nine steps.
type turn struct {
	run.Turn

	m           *message
	data        events.Canonical // structured data
	fingerprint [sha256.Size]byte
	hash        string // of the fingerprint, in hex
	ref         idempotency.TurnRef

	effectUnknown bool  // only the tool can report its effect, and has not yet
	notEntered    bool  // this worker has the claim, and its call ended before the tool was entered
	closes        bool  // its tool is a program: steps without a response are ended before the turn is
	unreported    bool  // the payload of its response has to be made of what is stored of its steps
	attempts      int32 // of its tool by this worker, once it was entered
	args          map[string]any
	argsJSON      events.Canonical
	reject        *rejection    // why the tool must not be entered, nil if it may
	unclaimed     bool          // it will never have a claim: it is rejected silently, or no record can hold its claim
	blocked       string        // why this worker cannot enter the tool of a claim again, "" if it can
	ran           time.Duration // the tool, in all attempts
	reserved      int64         // bytes of the store, counted for it before it was claimed
	// changes are what its tool has changed in the context variables, to be merged once the response is stored;
	// nil if it has changed nothing
	changes   *variables.Change
	claimed   *idempotency.Record // its claim, nil for a turn that this message has started
	ended     *programEnd         // of a call whose tool is a program, once this worker knows its end; for metrics
	program   *programTurn        // what is known of it if its tool runs programs, see [turn.programState]; nil if nothing is
	retry     *retryPlan          // of a retry: what it runs and what it keeps, nil until the turn that it retries was read
	usage     *events.Usage       // of the corrections of its message, if it is one
	corrects  bool                // a model may be asked to correct its output
	origin    *chatMessage        // the message that has made it, if this worker handles that message; nil otherwise
	reads     bool                // it has a place in the budget of retries
	undecided error               // why it is not known whether the turn may run
}

// turn handles the message that starts a turn.
func (h *Handlers) turn(ctx context.Context, m *message, at subjects.Inbound, body *events.Message) inbound.Disposition {
	// 1. Decode. An event that cannot be decoded, but names its chat and turn, is rejected (end.go): admit then
	// gets a turn with t.reject. Any other becomes a dead letter: a response needs their names.
	read := body.Turn
	switch cmp.Or(body.Kind, at.Kind) {
	case events.KindPlanReady:
		read = body.PlanReady
	case events.KindRetry:
		read = body.Retry
	}
	event, err := read()
	if err != nil {
		return h.undecoded(ctx, m, at.Kind, err)
	}
	if !event.AutoToolMode { // the application calls the tool itself: there is no turn to run
		h.Metrics.NotATurn.Inc()
		return inbound.Acked()
	}
	t := newTurn(m, event)
	t.Depth = inbound.Depth(m.Header)
	t.setData(body.CanonicalData(event))
	return h.admit(ctx, t)
}

// admit decides whether a turn may run, and claims it.
func (h *Handlers) admit(ctx context.Context, t *turn) inbound.Disposition {
	// 2. Admit: the body belongs on its subject, the turn has not ended, and the message is neither too old nor was it
	// delivered too often.
	m := t.m
	if err := h.checkSubject(m, t.StructuredOutputReady); t.origin == nil && err != nil {
		return h.deadLetter(m, deadletter.ReasonSubjectMismatch, err)
	}
	if h.Journal.RecentlyEnded(t.ref, h.Now()) {
		return h.ackDuplicate(t) // by memory: this costs no request
	}
	if m.Lease.Delivery > 2*maxDeliveries && h.countsDeliveries(m) { // not even its rejection was claimed
		if d, dead := h.deadIfUnclaimed(t); dead {
			return d
		}
	}
	switch age := h.ageOf(t); {
	case age > h.MaxEventAge:
		t.reject = rejectTooOld(age, h.MaxEventAge)
	case m.Lease.Delivery > maxDeliveries && h.countsDeliveries(m):
		t.reject = rejectUndeliverable(m.Lease.Delivery)
	case t.reject != nil: // it could not be decoded
	default: // 3. to 5.
		if d, requeued := h.requeueRetry(ctx, t); requeued {
			return d
		}
		defer h.freeRetry(t)
		wait := h.prepare(t)
		if t.undecided != nil {
			return h.redeliverTurn(t, "the turn to retry cannot be read", t.undecided)
		}
		if wait > 0 && h.inGrace(m) {
			m.mayHold = t.keys()
			if d, requeued := h.requeue(m, wait); requeued {
				return d
			} // else it ends here, as no_binding
		}
	}
	if t.reject != nil {
		t.reject.correcting = t.corrects && t.reject.code == events.CodeValidationFailed
	}
	if d, silent := h.rejectSilently(t); silent {
		return d
	}

	// 6. Claim: the record is the event chat.tool_call. A delivery whose last heartbeat is long ago may have been redelivered
	// to another worker by now. It claims nothing, and an ack or nak of it would be one of the other worker's message. A
	// new turn has to wait while the store has no room for it.
	if !m.Fresh() {
		return inbound.Left()
	}
	if d, requeued := h.requeueWhileFull(t, h.claimedBefore); requeued {
		return d
	}
	t.Hit(failpoint.BeforeClaim)
	decision, err := h.claimKey(ctx, t)
	h.freeRetry(t)
	h.returnRoom(t, decision, err)
	if err != nil {
		return h.claimFailed(t, err)
	}
	return h.afterClaim(ctx, t, decision)
}

// afterClaim does what the claim of a turn, or the record that stood in its place, decides.
func (h *Handlers) afterClaim(ctx context.Context, t *turn, decision idempotency.Decision) inbound.Disposition {
	claimedBefore := decision.Turn != nil // by another message, or by an earlier delivery of this one
	// A hold without a token only ends the turn: it has begun no epoch.
	if claimedBefore && decision.Hold.Token > 0 {
		h.Metrics.Takeovers.Inc()
	}
	switch decision.Action {
	case idempotency.Run, idempotency.EndTurn:
		if claimedBefore {
			return h.continueOwn(ctx, t, decision)
		}
		if decision.Action == idempotency.EndTurn {
			return h.endWithCode(t, decision, decision.Code)
		}
		t.Hit(failpoint.AfterClaim)
		return h.invoke(ctx, t, decision)
	case idempotency.Requeue:
		t.m.mayHold = t.keys()
		return h.requeueLease(t.m, true)
	case idempotency.Conflict:
		return h.conflict(t)
	case idempotency.Done:
		return h.ackEnded(ctx, t, decision)
	case idempotency.Duplicate, idempotency.Signalled:
		return h.claimedByOther(ctx, t)
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

// attempts bounds how often a tool was entered; it is a few times.
func attempts(n int) int32 { return int32(min(n, math.MaxInt32)) }

// traceparent returns the trace context of the turn. A message that has taken the turn over, such as an answer, has another one.
func (t *turn) traceparent() string {
	if t.claimed != nil && t.claimed.Meta.Trace != "" {
		return t.claimed.Meta.Trace
	}
	return inbound.Trace(t.m.Header)
}

// setData sets the data of a turn in the form of records, and the fingerprint that distinguishes it from other data.
func (t *turn) setData(data events.Canonical, fingerprint [sha256.Size]byte) {
	t.data, t.fingerprint, t.hash, t.ref = data, fingerprint, events.Hex(fingerprint), idempotency.RefOf(t.Name, fingerprint)
}

// prepare resolves, validates and maps. It sets t.reject when the tool cannot be entered, and
// returns how long to wait when another worker may know the workflow.
func (h *Handlers) prepare(t *turn) (wait time.Duration) {
	if t.ResumeOf != "" {
		return h.prepareRetry(t)
	}
	// 3. Resolve the binding of workflow, agent and model, and its tool.
	var err error
	t.Binding, err = resolve(h.Bindings(), t)
	switch {
	case errors.Is(err, bindings.ErrUnknownWorkflow):
		t.reject = reject(events.CodeNoBinding, err)
		return h.unknownWorkflowDelay(t)
	case err != nil:
		t.reject = reject(events.CodeNoBinding, err)
		return 0
	}
	if err = h.findTool(t); err != nil {
		t.reject = reject(events.CodeUnknownTool, err)
		return 0
	}
	if t.Binding.Program != nil {
		h.prepareProgram(t)
		return 0
	}
	// 4. Validate the data against the model, and 5. map it to the arguments of the tool.
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

// invoke enters the tool, and stores its outcome. The tool of a turn that is continued is entered here as well.
func (h *Handlers) invoke(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	if t.Binding.Program != nil {
		return h.runProgram(ctx, t, d)
	}
	// 7. Invoke: only this, and the same for a step of a program, enters a tool.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begun := h.serverNow(t.m)
	firstHeartbeat(t.m, d.Hold.Effect, begun)
	r := h.runs.Start(ctx, stop, &t.Turn, d, begun)
	defer h.runs.Remove(r)
	if h.cancelCopies.Has(t.Name, h.Now()) && h.cancelStored(t.m.Held, d.Hold) {
		stop(errCancelled)
	}
	call, err := h.toolCall(ctx, t, r)
	if err != nil {
		return h.endWithoutContext(t, d, err)
	}
	h.Metrics.InFlight.Inc()
	out := h.Engine.Do(ctx, r.Invocation(call))
	t.Hit(failpoint.AfterTool)
	run.Scrub(call.Secrets, &out)
	h.Metrics.InFlight.Dec()
	h.Metrics.Tool(t.Binding, &out)
	if t.notEntered = !out.Entered; out.Entered {
		t.attempts, t.ran = attempts(out.Attempts), out.Duration
	}
	var hostErr error
	d.Hold, hostErr = r.Close() // of a later epoch, if the run was woken and could not park the first one
	if hostErr != nil {         // the host of the call has ended the run: parked, expired, cancelled, lost
		return h.endStopped(t, d, hostErr)
	}
	if out.Stopped != nil {
		h.logThrottled(t.m, slog.LevelInfo, "tool stopped", "", t.Attrs("why", out.Stopped, "entered", out.Entered)...)
	} else if out.Err != nil {
		h.logFailure(t, out)
	}
	unsafe := d.Hold.Effect == string(bindings.EffectUnsafe)
	sinceBegun := out.Waited + out.Duration + out.Paused
	switch {
	case errors.Is(out.Stopped, ErrDraining) && unsafe:
		// Also if the tool was not entered: the next owner could not know that and would report that it may have run.
		// This worker knows (t.notEntered), and the response states that the tool did not run.
		return h.endWithCode(t, d, events.CodeInterrupted)
	case errors.Is(out.Stopped, ErrDraining) && out.Abandoned: // the tool ignores its context and still runs
		return inbound.Left()
	case errors.Is(out.Stopped, ErrDraining):
		return inbound.NakAfter(0)
	case out.Stopped != nil, h.cancelledUnseen(t, d, sinceBegun):
		return h.endWithCode(t, d, events.CodeCancelled)
	}
	return h.endWithOutcome(t, d.Hold, out)
}

// finish stores the response and acknowledges the message. The first stored response wins; a later result is dropped and
// counted.
func (h *Handlers) finish(ctx context.Context, t *turn, hold idempotency.Hold, r *events.ToolResponse) inbound.Disposition {
	// 8. Finish: the record is the event chat.tool_response.
	held, err := h.closeSteps(ctx, t, hold, r.Code)
	if err == nil && held != nil && (t.unreported || t.missesEnd(held)) && held.Response == nil && !held.Oversized() {
		err = h.reportSteps(ctx, t, held, r)
	}
	if err != nil {
		h.warnUnclosed(t, err)
		return inbound.Left()
	}
	buffer := h.buffers.get()
	defer h.buffers.put(buffer)
	event, err := h.appendResponse((*buffer)[:0], r)
	if err != nil {
		h.logThrottled(t.m, slog.LevelError, "the response cannot be encoded; the message will be redelivered", "", "turn", throttle.Cut(t.CallID), "err", err)
		return inbound.Left()
	}
	*buffer = event
	stored, err := h.Journal.Finish(ctx, hold, event)
	if errors.Is(err, idempotency.ErrRefused) && r.Code != events.CodeTooLarge {
		failTooLarge(r)
		t.unreported = false
		return h.finish(ctx, t, hold, r)
	}
	if errors.Is(err, idempotency.ErrDamaged) {
		return h.deadDamagedResponse(t)
	}
	if err != nil {
		h.logThrottled(t.m, slog.LevelWarn, "the response could not be stored; the message will be redelivered", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
		return inbound.Left()
	}
	t.Hit(failpoint.AfterFinish)
	h.eraseSecrets(ctx, t)
	if !stored {
		d := h.ackLateResult(ctx, t)
		if d.Do == inbound.Ack { // otherwise the message is redelivered
			h.Metrics.LateResults.Inc()
			h.logThrottled(t.m, slog.LevelWarn, "the turn had a response already; the result is dropped", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "epoch", hold.Epoch)
		}
		return d
	}
	h.addStored(t.Key.App, len(event))
	outcome := string(r.Code)
	if outcome == "" {
		outcome = r.Status
	}
	if t.Asked {
		h.runs.Complete(&t.Turn, events.RunEnded, "")
	}
	h.Metrics.Turn(t.Binding, outcome)
	h.countProgram(t, r)
	h.Metrics.TurnSeconds.Observe(h.age(t.m).Seconds())
	if h.Logger.Enabled(ctx, slog.LevelDebug) {
		h.Logger.Debug("turn ended", "workflow", t.Workflow, "chat", t.Chat, "turn", t.CallID, "outcome", outcome,
			"epoch", hold.Epoch, "ms", r.DurationMS)
	}
	if d := h.completeEnded(ctx, t, r); d.Do != inbound.Ack {
		return d
	}
	// 9. Acknowledge: the record is stored.
	h.Journal.NoteEnded(t.ref, h.Now())
	return inbound.Acked()
}
