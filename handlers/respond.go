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
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
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

// finish stores the response. The first stored response wins; a result that comes second is
// dropped and counted.
func (h *Handlers) finish(ctx context.Context, t *turn, hold idempotency.Hold, r *events.ToolResponse) inbound.Disposition {
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
	h.Journal.NoteFinished(t.ref, h.Now())
	return inbound.Acked()
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
