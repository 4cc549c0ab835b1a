package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// longRun is how long a tool must have run before its worker looks for a cancel whose live
// copy may have been lost. Shorter runs are not worth the read.
const longRun = time.Second

// toolCall builds what the tool gets.
func (h *Handlers) toolCall(ctx context.Context, t *turn, r *run.Run) (*tools.Call, error) {
	hold, call := r.Hold(), run.Call(t.Binding, t.StructuredOutputReady, t.CallID)
	call.Args, call.ArgsJSON, call.Secrets, call.Trace = t.args, json.RawMessage(t.argsJSON), r.Secrets(), inbound.Trace(t.m.Header)
	call.FencingToken, call.Epoch = hold.Token, hold.Epoch
	load := func(ctx context.Context) (map[string]any, error) {
		vars := t.Vars
		if vars == nil {
			var err error
			if vars, err = h.Variables.Load(ctx, t.App, t.Chat, t.ContextVariables); err != nil {
				return nil, err
			}
		}
		r.KeepContext(vars)
		return t.Binding.Context(t.StructuredOutputReady, vars), nil
	}
	switch {
	case !t.Binding.AcceptsContext:
	case t.Binding.Kind == bindings.KindGo:
		call.LoadContext = func(ctx context.Context) (map[string]any, error) { // most Go tools never look
			ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
			defer cancel()
			return load(ctx)
		}
	default:
		reading, done := store.Context(t.m.Held, ctx)
		defer done()
		var err error
		if call.Context, err = load(reading); err != nil {
			return nil, err
		}
	}
	return call, nil
}

// withoutContext ends a turn whose tool is not entered because its context variables cannot be
// read: nobody can, or the worker stops, or the lease has ended meanwhile.
func (h *Handlers) withoutContext(t *turn, d idempotency.Decision, err error) inbound.Disposition {
	t.waited = true
	switch {
	case errors.Is(err, events.ErrStateCorrupt):
		h.often(t.m, slog.LevelError, "a document of context variables cannot be read; the turn ends as state_corrupt", "", t.Attrs("key", subjects.ContextKey(t.App, t.Chat))...)
		again := ""
		if d.Hold.Epoch > 1 {
			again = " again"
		}
		r := t.response()
		r.ToolName = t.Binding.Tool
		fail(r, events.CodeStateCorrupt, events.Clip(fmt.Sprintf("Tool %s was not entered%s: %s.", r.ToolName, again, reason(err))))
		return h.end(t, d.Hold, r)
	case errors.Is(err, errCancelled):
		return h.conclude(t, d, events.CodeCancelled)
	case errors.Is(err, ErrDraining) && t.Effect == bindings.EffectUnsafe:
		return h.conclude(t, d, events.CodeInterrupted)
	}
	return h.comesBack(t, "context variables cannot be read", err)
}

// storeOutcome stores the outcome of a tool that was entered. What cannot be stored of it, the
// response says; the tool's effect has happened, and it is not entered again for that.
func (h *Handlers) storeOutcome(ctx context.Context, t *turn, hold idempotency.Hold, out engine.Outcome) inbound.Disposition {
	r := t.response()
	r.ToolName, r.Attempts, r.DurationMS = t.Binding.Tool, out.Attempts, out.Duration.Milliseconds()
	keys, err := h.storeContext(ctx, t, hold, out)
	if err != nil {
		code := unstorable(t, err)
		if code == "" {
			return h.comesBack(t, "context changes could not be stored", err)
		}
		h.often(t.m, slog.LevelWarn, "context changes are not stored; the response says why", "", t.Attrs("code", code, "err", events.LogText(err))...)
		out.Status, out.Success, out.Code = events.StatusError, false, code
		out.Content = events.Clip(fmt.Sprintf("Tool %s ran, and its result is in the payload, but what it changed in the context variables is not stored: %s.",
			r.ToolName, reason(err)))
		out.Payload = events.JSONOf(withResult{events.StatusError, out.Content, code, out.Payload})
	}
	r.Status, r.Success, r.Content, r.Code, r.ContextKeys = out.Status, out.Success, out.Content, out.Code, keys
	r.Payload, err = h.shrink(ctx, t.m.tools, t.Key, events.KindToolResponse, out.Payload, out.Payload)
	if err != nil {
		code := unstorable(t, err)
		if code == "" {
			return h.comesBack(t, "the result could not be stored as a blob", err)
		}
		h.often(t.m, slog.LevelWarn, "a result is not stored; the response says why", "", t.Attrs("code", code, "bytes", len(out.Payload), "err", events.LogText(err))...)
		text := fmt.Sprintf("Tool %s ran and its effect has happened, but its result of %d bytes is not stored: %s.", r.ToolName, len(out.Payload), reason(err))
		if out.Code != "" {
			text += " Before that: " + out.Content
		}
		fail(r, code, events.Clip(text))
		r.ContextKeys = keys
	}
	return h.finish(ctx, t, hold, r)
}

// withResult is the payload of a response whose tool has a result, though its changes of the
// context variables are not stored.
type withResult struct {
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Code    events.Code     `json:"code"`
	Result  json.RawMessage `json:"result"`
}

// changesOf returns what the tool changed in its context variables, without those that the turn itself
// decides: the next turn would not see the changes.
func (h *Handlers) changesOf(t *turn, out engine.Outcome) variables.Delta {
	if len(out.Set) == 0 && len(out.Remove) == 0 {
		return variables.Delta{}
	}
	delta, ignored := variables.Delta{Set: out.Set, Remove: out.Remove}.Without(t.Binding.TrustedData(t.StructuredOutputReady))
	if len(ignored) > 0 {
		h.often(t.m, slog.LevelWarn, "a tool changed context variables that the turn itself decides: these changes are ignored; use other names", "", t.Attrs("names", ignored)...)
	}
	return delta
}

// storeContext stores what the tool changed in its context variables: a delta in the journal, and
// staged in the document of the chat, so that nothing but the response is missing for it to
// count. It returns the names.
func (h *Handlers) storeContext(ctx context.Context, t *turn, hold idempotency.Hold, out engine.Outcome) ([]string, error) {
	delta := h.changesOf(t, out)
	if len(delta.Set) == 0 && len(delta.Remove) == 0 {
		return nil, nil
	}
	delta.Base = t.BaseOf(delta.Names())
	data, err := delta.Encode()
	if err != nil {
		return nil, store.Refusal(err, "the changes have no JSON form that can be stored")
	}
	change := variables.Change{Delta: delta, Run: hold}
	change.Seq, err = h.Journal.Delta(ctx, hold, data)
	if errors.Is(err, idempotency.ErrRefused) {
		return nil, store.Refusal(err, "the changes take %d bytes, more than a record of the journal can", len(data))
	}
	if err != nil {
		return nil, err
	}
	t.Hit(failpoint.AfterDelta)
	merge := func(ctx context.Context) error {
		writing, done := store.Context(ctx, t.m.tools)
		defer done()
		return h.Variables.Merge(writing, t.App, t.Chat, change.Seq, delta)
	}
	writing, done := store.Context(ctx, t.m.tools)
	defer done()
	if err := h.Variables.Stage(writing, t.App, t.Chat, change); err != nil {
		return nil, err
	}
	t.merge = merge
	return delta.Names(), nil
}

// unwritable says why no event can hold the result of a tool: where in it, and what is there.
func unwritable(tool string, err error) string {
	where, what := "", err.Error()
	var syntax *events.SyntaxError
	if errors.As(err, &syntax) {
		what = syntax.Reason
		if syntax.Pointer != "" {
			where = fmt.Sprintf(" at %.200q", syntax.Pointer)
		}
	}
	return events.Clip(fmt.Sprintf("Tool %s has run, but no event can hold its result%s: %s.", tool, where, what))
}

// fail makes r the response of a turn whose result cannot be stored.
func fail(r *events.ToolResponse, code events.Code, content string) {
	r.Status, r.Success, r.Code, r.Content = events.StatusError, false, code, content
	r.Payload, r.ContextKeys = failure(code, content), nil
}

// cancelledSince looks for a cancel whose live copy was lost while a tool ran for long.
func (h *Handlers) cancelledSince(t *turn, d idempotency.Decision, ran time.Duration) bool {
	if ran < longRun {
		return false
	}
	ctx, done := afterLease(t.m, lastTry)
	defer done()
	cancelled, err := h.Journal.Cancelled(ctx, d.Hold)
	return err == nil && cancelled
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

// conclude stores the response of a turn whose tool is not entered (any more). What the claim
// says goes before what this worker's manifests say.
func (h *Handlers) conclude(t *turn, d idempotency.Decision, code events.Code) inbound.Disposition {
	t.NoteSecrets(d)
	r := t.response()
	if t.Binding != nil {
		r.ToolName = t.Binding.Tool
	}
	t.Asked = t.Asked || d.Turn != nil && len(d.Turn.Questions()) > 0
	stored := t.reject
	if d.Turn != nil && d.Turn.Claim != nil && code != events.CodeStateCorrupt {
		stored = fromClaim(r, d.Turn.Claim)
	}
	r.Status, r.Code = events.StatusError, code
	unsafe := d.Hold.Effect == string(bindings.EffectUnsafe)
	switch {
	// Nobody else enters an unsafe tool. Any other may have been entered by who took the turn over.
	case t.waited && unsafe && code == events.CodeInterrupted:
		r.Content = fmt.Sprintf("The worker stopped before tool %s was entered: it did not run.", r.ToolName)
	case t.waited && unsafe && code == events.CodeCancelled:
		r.Content = fmt.Sprintf("The turn was cancelled before tool %s was entered: it did not run.", r.ToolName)
	case t.waited && code == events.CodeCancelled:
		r.Content = fmt.Sprintf("The turn was cancelled before this worker entered tool %s.", r.ToolName)
	case t.stuck != "" && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("Tool %s cannot go on in the worker that took the turn up (%s): what it did before may or may not have happened, "+
			"and it is not run again.", r.ToolName, t.stuck)
	case code == events.CodeInterrupted && (stored == nil || stored.code != code):
		r.Content = fmt.Sprintf("The worker stopped, or lost the turn, while tool %s ran: its effect may or may not have happened, and it is not run again.", r.ToolName)
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
		h.often(t.m, slog.LevelError, "a journal record cannot be read; the turn ends as state_corrupt", "", "key", t.Key.String())
	case stored != nil:
		r.Content, r.Payload = stored.content, stored.payload
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
	}
	if t.reject != nil && t.m.Lease.Delivery > maxDeliveries && d.Turn == nil {
		if dead := h.dead(t.m, deadletter.ReasonUndeliverable, errors.New(t.reject.content)); dead.Do != inbound.Ack {
			return dead
		}
	}
	return h.end(t, d.Hold, r)
}

// fromClaim fills r from a stored claim and returns the verdict it holds, if any.
func fromClaim(r *events.ToolResponse, claim *idempotency.Record) *rejection {
	call, err := events.ReadCall(claim.Data)
	if err != nil {
		return nil
	}
	r.ToolName, r.Agent, r.WorkflowName = call.ToolName, call.Agent, call.WorkflowName
	if call.Rejection == nil {
		return nil
	}
	return &rejection{code: call.Code, content: call.Rejection.Content, payload: call.Rejection.Payload}
}

// eraseTime bounds the erasing of a turn's secrets after its response.
const eraseTime = 5 * time.Second

// eraseSecrets erases the sealed secrets of a turn that has its response. A sweep erases the rest.
func (h *Handlers) eraseSecrets(ctx context.Context, t *turn) {
	if !t.Secret.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseTime)
	defer cancel()
	n, err := h.Journal.Erase(ctx, t.Key)
	if err != nil {
		h.often(t.m, slog.LevelWarn, "secret answers could not be erased; a sweep does it", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
		return
	}
	h.Logger.Debug("secret answers erased", "chat", t.Chat, "turn", t.CallID, "records", n)
}

// shrink makes a blob of a payload that no record should hold. Most payloads are small and
// cost nothing here.
func (h *Handlers) shrink(lease, tools context.Context, key subjects.Key, kind string, value any, data []byte) (any, error) {
	if h.Blobs.Inline(len(data)) {
		return value, nil
	}
	if kind != events.KindToolCall { // that was counted with its message
		h.addRoom(key.App, len(data))
	}
	ctx, done := store.Context(lease, tools)
	defer done()
	return h.Blobs.Shrink(ctx, key, kind, value, data)
}

// reason is the text of an error for a response.
func reason(err error) string {
	var e *events.Error
	switch {
	case errors.As(err, &e) && e.Msg != "":
		return e.Msg
	case errors.Is(err, ErrDraining):
		return "the worker stopped before the store had answered"
	}
	return err.Error()
}

// unstorable returns the code with which a turn ends when what its tool returned or changed
// is not stored because of err, "" when its message comes back instead.
func unstorable(t *turn, err error) events.Code {
	switch {
	case errors.Is(err, events.ErrStateCorrupt):
		return events.CodeStateCorrupt
	case store.Decided(err):
		return events.CodeTooLarge
	case errors.Is(err, ErrDraining) && t.Effect == bindings.EffectUnsafe: // nobody runs it again
		return events.CodeInterrupted
	}
	return ""
}

// comesBack is what becomes of a message whose work outside the journal has no outcome.
func (h *Handlers) comesBack(t *turn, what string, err error) inbound.Disposition {
	h.often(t.m, slog.LevelWarn, "the message comes back", what, "why", what, "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", events.LogText(err))
	if errors.Is(err, ErrDraining) {
		return inbound.NakAfter(0)
	}
	return inbound.Left()
}
