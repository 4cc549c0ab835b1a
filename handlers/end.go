package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// How a turn ends. All ways lead to [Handlers.finish] (turn.go, step 8), which stores the response:
//
//	endWithOutcome: the tool was entered and has an outcome → storeOutcome (response.go) → finish
//	endWithCode: the tool is not entered (any more), a code states why → endWithResponse → finish
//	endStopped: the host of the call has stopped the run → endWithCode, or its own response → endWithResponse → finish
//	endWithoutContext: the context variables cannot be read → the same
//	deadDamagedResponse: the stored response cannot be read → dead letter
//
// As long as the lease lasts, a write of unknown outcome is sent again. A lost lease does not end that: the response is a
// create, which harms no other worker however late it is, and the lease may have lapsed because no worker could reach
// the server.

// lastTry is how long a worker that has lost its lease tries to store a response without a result of the tool: any other
// worker stores the same.
const lastTry = 10 * time.Second

// maxPendingResults bounds the results of tools that a worker without a lease still tries to store. Each keeps its run
// and its slot.
const maxPendingResults = 4096

// endWithOutcome stores the outcome of a tool that was entered. It tries until the worker has ended its tools:
// without the result, a turn whose tool is unsafe ends as interrupted.
func (h *Handlers) endWithOutcome(t *turn, hold idempotency.Hold, out engine.Outcome) inbound.Disposition {
	write := func(ctx context.Context) inbound.Disposition { return h.storeOutcome(ctx, t, hold, out) }
	if d, decided := underLease(t.m, write); decided {
		return d
	}
	defer h.pendingResults.Add(-1)
	if h.pendingResults.Add(1) > maxPendingResults {
		h.logThrottled(t.m, slog.LevelError, "a result is dropped: too many wait for the server after their leases have ended", "", t.Attrs("limit", maxPendingResults)...)
		return inbound.Left()
	}
	h.logThrottled(t.m, slog.LevelWarn, "the lease ended before the result was stored: the worker tries to store it until it stops", "", t.Attrs()...)
	ctx, done := afterLease(t.m, 0)
	defer done()
	return write(ctx)
}

// endWithResponse stores the response of a turn whose tool has no outcome.
func (h *Handlers) endWithResponse(t *turn, hold idempotency.Hold, r *events.ToolResponse) inbound.Disposition {
	write := func(ctx context.Context) inbound.Disposition { return h.finish(ctx, t, hold, r) }
	if d, decided := underLease(t.m, write); decided {
		return d
	}
	ctx, done := afterLease(t.m, lastTry)
	defer done()
	return write(ctx)
}

// underLease writes as long as the lease lasts. It reports false if the lease is lost and nothing is decided.
func underLease(m *message, write func(ctx context.Context) inbound.Disposition) (d inbound.Disposition, decided bool) {
	if m.Held.Err() != nil {
		return inbound.Left(), false
	}
	d = write(m.Held)
	return d, d.Do != inbound.Leave || m.Held.Err() == nil
}

// afterLease returns a context for reads and writes that need no lease. It ends soon after the worker has stopped its
// tools, and after most, unless that is 0.
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

// endStopped ends the run that the host of its call has stopped because of why, and its turn, unless that is parked or
// another worker has it. A result of the tool does not count.
func (h *Handlers) endStopped(t *turn, d idempotency.Decision, why error) inbound.Disposition {
	var coded *events.Error
	switch {
	case errors.Is(why, tools.ErrParked):
		return inbound.Acked()
	case errors.Is(why, ErrDraining) && d.Hold.Effect == string(bindings.EffectUnsafe): // without a lease
		return h.endWithCode(t, d, events.CodeInterrupted)
	case !errors.As(why, &coded):
		h.logThrottled(t.m, slog.LevelWarn, "the run was stopped; its message will be redelivered", "", t.Attrs("why", events.LogText(why))...)
		return inbound.Left()
	case coded.Code == events.CodeCancelled, coded.Code == events.CodeStateCorrupt:
		return h.endWithCode(t, d, coded.Code)
	}
	h.logThrottled(t.m, slog.LevelWarn, "the turn ends at a question; its response has the reason", "", t.Attrs("code", coded.Code)...)
	r := t.response()
	r.ToolName = t.Binding.Tool
	fail(&r, coded.Code, events.Clip(coded.Msg))
	t.unreported = true
	return h.endWithResponse(t, d.Hold, &r)
}

// deadDamagedResponse keeps the message of a turn whose response cannot be read. Nothing can be stored in its place, and
// the request API reports it to readers; the tool is not entered (again).
func (h *Handlers) deadDamagedResponse(t *turn) inbound.Disposition {
	h.logThrottled(t.m, slog.LevelError, "the response of a turn cannot be read; its message becomes a dead letter", "", "key", t.Key.String())
	return h.deadLetter(t.m, deadletter.ReasonStateCorrupt, idempotency.ErrDamaged)
}

// endWithoutContext ends a turn whose tool is not entered because its context variables cannot be read: they are damaged,
// the worker stops, or the lease has ended meanwhile.
func (h *Handlers) endWithoutContext(t *turn, d idempotency.Decision, err error) inbound.Disposition {
	t.notEntered = true
	switch {
	case errors.Is(err, events.ErrStateCorrupt):
		h.logThrottled(t.m, slog.LevelError, "a document of context variables cannot be read; the turn ends as state_corrupt", "", t.Attrs("key", subjects.ContextKey(t.App, t.Chat))...)
		again := ""
		if d.Hold.Epoch > 1 {
			again = " again"
		}
		r := t.response()
		r.ToolName = t.Binding.Tool
		fail(&r, events.CodeStateCorrupt, events.Clip(fmt.Sprintf("Tool %s was not entered%s: %s.", r.ToolName, again, reason(err))))
		return h.endWithResponse(t, d.Hold, &r)
	case errors.Is(err, errCancelled):
		return h.endWithCode(t, d, events.CodeCancelled)
	case errors.Is(err, ErrDraining) && t.Effect == bindings.EffectUnsafe:
		return h.endWithCode(t, d, events.CodeInterrupted)
	}
	return h.redeliverTurn(t, "context variables cannot be read", err)
}

// endWithCode stores the response of a turn whose tool is not entered (any more). The claim takes precedence over the
// manifests of this worker.
func (h *Handlers) endWithCode(t *turn, d idempotency.Decision, code events.Code) inbound.Disposition {
	t.noteDecision(d)
	r := t.response()
	if t.Binding != nil {
		r.ToolName = t.Binding.Tool
	}
	t.Asked = t.Asked || d.Turn != nil && len(d.Turn.Questions()) > 0
	stored := t.reject
	if d.Turn != nil && d.Turn.Claim != nil && code != events.CodeStateCorrupt {
		stored = fromClaim(&r, d.Turn.Claim)
	}
	t.closes = t.closes || ofProgram(d.Turn)
	r.Status, r.Code = events.StatusError, code
	unsafe := d.Hold.Effect == string(bindings.EffectUnsafe)
	switch {
	// No other worker enters an unsafe tool. Any other tool may have been entered by a worker that took over the turn.
	case t.notEntered && unsafe && code == events.CodeInterrupted:
		r.Content = fmt.Sprintf("The worker stopped before tool %s was entered: it did not run.", r.ToolName)
	case t.notEntered && unsafe && code == events.CodeCancelled:
		r.Content = fmt.Sprintf("The turn was cancelled before tool %s was entered: it did not run.", r.ToolName)
	case t.notEntered && code == events.CodeCancelled:
		r.Content = fmt.Sprintf("The turn was cancelled before this worker entered tool %s.", r.ToolName)
	case t.blocked != "" && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("Tool %s cannot continue in the worker that took over the turn (%s): what it did before may or may not have happened, "+
			"and it is not run again.", r.ToolName, t.blocked)
	case code == events.CodeInterrupted && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("The worker stopped, or lost the turn, while tool %s ran: its effect may or may not have happened, and it is not run again.", r.ToolName)
	case code == events.CodeCancelled && t.program != nil && t.program.cancelled != "":
		r.Content = t.program.cancelled
	case code == events.CodeCancelled && d.Turn != nil && d.Turn.WasParked(d.Hold.Epoch-1) && nothingCalled(d.Turn):
		r.Content = cancelledBeforeCalls
	case code == events.CodeCancelled && d.Turn != nil && d.Turn.WasParked(d.Hold.Epoch-1):
		r.Content = fmt.Sprintf("The turn was cancelled while tool %s waited for a person: what it did before it asked may have happened, and nothing after it.", r.ToolName)
	case code == events.CodeCancelled && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("The turn was cancelled while tool %s ran: its effect may or may not have happened.", r.ToolName)
	case code == events.CodeTooLarge && d.Turn != nil && d.Turn.Oversized():
		r.Content = fmt.Sprintf("The turn has more records in the journal than can be read: the effect of tool %s may or may not have happened, and it is not run again.", r.ToolName)
	case code == events.CodeExpired:
		r.Content = fmt.Sprintf("The turn was open for longer than %s: the effect of tool %s may or may not have happened.", h.MaxTurnLife, r.ToolName)
	case code == events.CodeStateCorrupt:
		r.Content = "The journal record of the turn cannot be read: it was not run (again)."
		h.logThrottled(t.m, slog.LevelError, "a journal record cannot be read; the turn ends as state_corrupt", "", "key", t.Key.String())
	case stored != nil:
		r.Content, r.Payload, r.Correcting = stored.content, stored.payload, stored.correctsAs(code)
	default:
		r.Content = "The turn was not run: " + string(code) + "."
	}
	if code == events.CodeCancelled && (stored == nil || stored.code != code) {
		if reason := h.cancelReason(t, d.Turn); reason != "" {
			r.Content = events.Clip(r.Content + " Reason: " + reason)
		}
	}
	if r.Payload == nil {
		r.Payload = failure(code, r.Content)
		t.unreported = true
	}
	if t.reject != nil && t.m.Lease.Delivery > maxDeliveries && d.Turn == nil {
		if dead := h.deadLetter(t.m, deadletter.ReasonUndeliverable, errors.New(t.reject.content)); dead.Do != inbound.Ack {
			return dead
		}
	}
	return h.endWithResponse(t, d.Hold, &r)
}

// noteDecision notes what the journal has read of a turn that ends.
func (t *turn) noteDecision(d idempotency.Decision) {
	t.NoteSecrets(d)
	if d.Turn == nil {
		return
	}
	if t.claimed == nil { // of a cancel, which has only the names of the turn
		t.claimed = d.Turn.Claim
	}
	if claim := d.Turn.Claim; claim != nil && claim.Meta.Effect == string(events.EffectProgram) {
		t.programState().newest.note(d.Turn.Newest())
		t.closes = true
	}
}

// fromClaim fills r from a stored claim and returns the rejection in it, nil without one.
func fromClaim(r *events.ToolResponse, claim *idempotency.Record) *rejection {
	call, err := events.ReadCall(claim.Data)
	if err != nil {
		return nil
	}
	r.ToolName, r.Agent, r.WorkflowName, r.Usage = call.ToolName, call.Agent, call.WorkflowName, call.Usage
	if call.Rejection == nil {
		return nil
	}
	return &rejection{code: call.Code, content: call.Rejection.Content, payload: call.Rejection.Payload, correcting: call.Correcting}
}

// rejection is why a turn ends before its tool. It is stored in the claim, so that every worker that finishes the turn
// responds the same.
type rejection struct {
	code    events.Code
	content string
	payload any
	refusal string // of a program: the reason in metrics

	correcting bool // a model is asked to correct the output
}

// correctsAs reports whether a turn that ends with a code because of the rejection is corrected.
func (r *rejection) correctsAs(code events.Code) bool { return r.correcting && r.code == code }

func reject(code events.Code, err error) *rejection {
	text := err.Error()
	var e *events.Error
	if errors.As(err, &e) && e.Msg != "" {
		text = e.Msg
	}
	return &rejection{code: code, content: text, payload: failure(code, text)}
}

func failure(code events.Code, text string) map[string]any {
	return map[string]any{"status": events.StatusError, "message": text, "code": string(code)}
}

// rejectUnread rejects an output that cannot be used, for the reason that the text or correction with it has stored.
func rejectUnread(unread *events.Rejection) *rejection {
	return &rejection{code: events.CodeValidationFailed, content: unread.Content, payload: unread.Payload}
}

// stored is a rejection as events have it, nil for none.
func (r *rejection) stored() *events.Rejection {
	if r == nil {
		return nil
	}
	return &events.Rejection{Content: r.content, Payload: r.payload}
}

func rejectTooOld(age, limit time.Duration) *rejection {
	text := fmt.Sprintf("The event was %s old, the limit is %s: it was not run.", age.Round(time.Second), limit)
	return &rejection{code: events.CodeTooOld, content: text, payload: failure(events.CodeTooOld, text)}
}

func rejectUndeliverable(deliveries uint64) *rejection {
	text := fmt.Sprintf("The event was delivered %d times, and each worker that received it stopped before it claimed the turn: it was not run.", deliveries)
	return &rejection{code: events.CodeInterrupted, content: text, payload: failure(events.CodeInterrupted, text)}
}

// rejectInvalid rejects data that does not fit its model, with the feedback that a language model needs to correct it.
func rejectInvalid(t *turn, violations []model.Violation) *rejection {
	name := t.Binding.ModelName
	content := misfit(t.Agent, name, violations)
	if t.Data == nil {
		content = fmt.Sprintf("structured_data is missing or null: it must be the output of agent %s, an object.", t.Agent)
	}
	return &rejection{
		code:    events.CodeValidationFailed,
		content: content,
		payload: invalid(violations, model.Feedback(name, violations)),
	}
}

// misfit is the text about an output that does not fit the model of its agent.
func misfit(agent, name string, violations []model.Violation) string {
	return fmt.Sprintf("The output of agent %s does not fit model %s (%s).", agent, name, plural.Of(len(violations), "violation"))
}

// invalid is the payload of an output that fails its validation, with the feedback for the model that wrote it.
func invalid(violations []model.Violation, feedback string) map[string]any {
	return map[string]any{
		"status": events.StatusError, "code": string(events.CodeValidationFailed), "errors": events.JSONOf(violations), "feedback": feedback,
	}
}

// rejectSilently acknowledges the message of a rejected turn whose workflow sends no response to failures
// (`compat: {silent: true}`). A turn that was claimed before gets its response all the same, and so does one that is corrected, or
// is a correction.
func (h *Handlers) rejectSilently(t *turn) (inbound.Disposition, bool) {
	if t.reject == nil || t.Binding == nil || !t.Binding.CompatSilent || t.reject.correcting || t.origin != nil && t.CorrectionOf != "" {
		return inbound.Disposition{}, false
	}
	claimed, err := h.claimedBefore(t)
	switch {
	case err != nil:
		return h.claimFailed(t, err), true
	case claimed:
		return inbound.Disposition{}, false
	}
	t.unclaimed = true
	h.Metrics.Turn(t.Binding, string(t.reject.code))
	return inbound.Acked(), true
}

// A turn whose event cannot be decoded, but names its chat and turn, is claimed and gets a response with the reason, like
// a turn whose data does not fit its model.

// undecoded rejects the turn of an event that cannot be decoded because of err. An event that does not name a chat and a
// turn becomes a dead letter.
func (h *Handlers) undecoded(ctx context.Context, m *message, kind string, err error) inbound.Disposition {
	event, ok := events.Addressee(m.Data, kind)
	if !ok {
		return h.deadLetter(m, deadletter.DecodeReason(err), err)
	}
	t := newTurn(m, event)
	t.setData(events.CanonicalData(event, len(m.Data)))
	if b, errBind := resolve(h.Bindings(), t); errBind == nil {
		t.Binding = b // for CompatSilent and the labels of metrics
	}
	t.reject = rejectUnusable(event, err)
	return h.admit(ctx, t)
}

// rejectUnusable rejects an event that cannot be decoded. An error inside of its data is one of the language
// model, and comes with feedback for it.
func rejectUnusable(event *events.StructuredOutputReady, err error) *rejection {
	var syntax *events.SyntaxError
	if errors.As(err, &syntax) {
		name, whose := "/structured_data", "The output of agent "+event.Agent
		if event.Plan {
			name = "/plan"
		}
		if event.Agent == "" {
			whose = "The plan"
		}
		if _, at, ok := strings.Cut(syntax.Pointer, name); ok {
			at = printable(at)
			violations := []model.Violation{{Path: at, Rule: "json", Expected: "JSON that every reader takes: " + syntax.Reason, GotType: "unreadable"}}
			return &rejection{
				code:    events.CodeValidationFailed,
				content: events.Clip(fmt.Sprintf("%s cannot be read at %q: %s.", whose, at, syntax.Reason)),
				payload: invalid(violations, model.Feedback(event.Model, violations)),
			}
		}
	}
	text := events.Clip("The event cannot be used: " + events.LogText(err))
	return &rejection{code: events.CodeValidationFailed, content: text, payload: failure(events.CodeValidationFailed, text)}
}

// printable shortens a pointer, whose keys may hold any characters, and replaces the unprintable ones.
func printable(pointer string) string {
	const long = 200
	if len(pointer) > long {
		pointer = pointer[:long] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(pointer, "?"))
}
