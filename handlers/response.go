package handlers

import (
	"cmp"
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
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// What a tool receives, and what its outcome becomes: toolCall builds the call (step 7 of a turn), storeOutcome the
// response (step 8), with the context changes (storeContext) and the payload (shrink). Errors of a part are classified by
// unstorable: the turn ends with a code, or its message is redelivered.

// longRun is how long ago a run must have begun before its worker reads the journal for a cancel whose live copy may have been
// lost. Shorter runs are not worth the read.
const longRun = time.Second

// toolCall builds the call that a tool gets: arguments, context variables, ids, secrets.
func (h *Handlers) toolCall(ctx context.Context, t *turn, r *run.Run) (*tools.Call, error) {
	hold, call := r.Hold(), run.Call(t.Binding, t.StructuredOutputReady, t.CallID)
	call.Args, call.ArgsJSON, call.Secrets, call.Trace = t.args, json.RawMessage(t.argsJSON), r.Secrets(), t.traceparent()
	call.FencingToken, call.Epoch, call.Effect, call.Depth, call.Program = hold.Token, hold.Epoch, hold.Effect, t.Depth, t.Program != ""
	load := func(ctx context.Context) (map[string]any, error) {
		vars := t.Vars
		if vars == nil {
			var err error
			if vars, err = h.Variables.Load(ctx, t.App, t.Chat, h.layers(&t.Turn)); err != nil {
				return nil, err
			}
		}
		r.KeepContext(vars)
		return t.Binding.Context(t.StructuredOutputReady, vars), nil
	}
	switch {
	case !t.Binding.AcceptsContext:
	case t.Binding.Kind == bindings.KindGo:
		call.LoadContext = func(ctx context.Context) (map[string]any, error) { // most Go tools read no context variables
			if err := t.readVariables(ctx, h); err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
			defer cancel()
			return load(ctx)
		}
	default:
		if err := t.readVariables(ctx, h); err != nil {
			return nil, err
		}
		reading, done := store.Context(t.m.Held, ctx)
		defer done()
		var err error
		if call.Context, err = load(reading); err != nil {
			return nil, err
		}
	}
	return call, nil
}

// layers returns the values of context variables that nothing has stored, for a turn.
func (h *Handlers) layers(t *run.Turn) variables.Layers {
	chat := bindings.Chat{App: t.App, ID: t.Chat, Workflow: t.Workflow, User: t.UserID}
	return variables.Layers{Start: h.Bindings().StartValues(t.Workflow, &chat), Snapshot: t.ContextVariables}
}

// storeOutcome stores the outcome of a tool that was entered as the response of its turn.
func (h *Handlers) storeOutcome(ctx context.Context, t *turn, hold idempotency.Hold, out engine.Outcome) inbound.Disposition {
	r := t.response()
	if err := h.outcomeResponse(ctx, t, hold, out, &r); err != nil {
		return h.redeliverTurn(t, "the result could not be stored", err)
	}
	return h.finish(ctx, t, hold, &r)
}

// outcomeResponse stores the context changes and the payload of a tool that was entered, and completes its response r. Where a part
// cannot be stored, the response has the reason instead; the tool's effect has happened, and it is not entered again. The error is
// why it is not known what is stored.
func (h *Handlers) outcomeResponse(ctx context.Context, t *turn, hold idempotency.Hold, out engine.Outcome, r *events.ToolResponse) error {
	r.ToolName, r.Attempts, r.DurationMS = t.Binding.Tool, out.Attempts, out.Duration.Milliseconds()
	h.setByAnswers(ctx, t)
	keys, err := h.storeContext(ctx, t, hold, out)
	if err != nil {
		code := unstorable(t, err)
		if code == "" {
			return fmt.Errorf("store the context changes: %w", err)
		}
		h.logThrottled(t.m, slog.LevelWarn, "context changes are not stored; the response has the reason", "", t.Attrs("code", code, "err", events.LogText(err))...)
		out.Status, out.Success, out.Code = events.StatusError, false, code
		out.Content = events.Clip(fmt.Sprintf("Tool %s ran, and its result is in the payload, but what it changed in the context variables is not stored: %s.",
			r.ToolName, reason(err)))
		out.Payload = events.JSONOf(withResult{events.StatusError, out.Content, code, out.Payload})
	}
	r.Status, r.Success, r.Content, r.Code, r.ContextKeys, r.EffectState = out.Status, out.Success, out.Content, out.Code, keys, out.EffectState
	if t.Program != "" && out.Status == events.StatusOK {
		result, err := events.Decode(out.Payload)
		if err != nil { // in a blob, which is stored as it is: what refers to the step could not read it
			fail(r, events.CodeToolError, unencodable(r.ToolName, err))
			r.ContextKeys = keys
			return nil
		}
		nameArtifact(r, result, out.Skill)
	}
	r.Payload, err = h.shrink(ctx, t.m.tools, t.Key, events.KindToolResponse, out.Payload, out.Payload)
	if t.Binding.Program != nil && err == nil {
		if _, refused := events.AppendToolResponse(nil, r, h.Now()); refused != nil { // many results, each of which fits into an event
			r.Payload, err = h.outside(ctx, t.m.tools, t.Key, events.KindToolResponse, out.Payload)
		}
	}
	if err != nil {
		code := unstorable(t, err)
		if code == "" {
			return fmt.Errorf("store the result as a blob: %w", err)
		}
		h.logThrottled(t.m, slog.LevelWarn, "a result is not stored; the response has the reason", "", t.Attrs("code", code, "bytes", len(out.Payload), "err", events.LogText(err))...)
		text := fmt.Sprintf("Tool %s ran and its effect has happened, but its result of %d bytes is not stored: %s.", r.ToolName, len(out.Payload), reason(err))
		if out.Code != "" {
			text += " Before that: " + out.Content
		}
		fail(r, code, events.Clip(text))
		r.ContextKeys = keys
	}
	return nil
}

// nameArtifact adds the ids of the artifact and of the skill that the result of a step names.
func nameArtifact(r *events.ToolResponse, result any, skill string) {
	r.ArtifactID, r.SkillID = tools.ArtifactID(result), cmp.Or(tools.SkillID(result), skill)
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
		h.logThrottled(t.m, slog.LevelWarn, "a tool changed context variables that the turn itself decides: these changes are ignored; use other names", "", t.Attrs("names", ignored)...)
	}
	return delta
}

// storeContext stores the changes of a tool to its context variables: as a delta in the journal, and staged in the
// document of the chat, so that they count as soon as the response is stored. It returns the names.
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
	writing, done := store.Context(ctx, t.m.tools)
	defer done()
	if err := h.Variables.Stage(writing, t.App, t.Chat, change); err != nil {
		return nil, err
	}
	t.changes = &change
	return delta.Names(), nil
}

// mergeChanges merges what the tool of a turn has changed in the context variables, once its response is stored.
func (h *Handlers) mergeChanges(ctx context.Context, t *turn, c *variables.Change) error {
	writing, done := store.Context(ctx, t.m.tools)
	defer done()
	return h.mergeOutcome(h.Variables.Merge(writing, t.App, t.Chat, c.Seq, c.Delta), t.Chat, t.CallID)
}

// unencodable returns the content of a response whose event cannot hold the result of its tool: the place and the reason.
func unencodable(tool string, err error) string {
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

// appendResponse encodes a response. One whose result no event can hold becomes a response with that error.
func (h *Handlers) appendResponse(into []byte, r *events.ToolResponse) ([]byte, error) {
	event, err := events.AppendToolResponse(into, r, h.Now())
	if err != nil {
		fail(r, events.CodeToolError, unencodable(r.ToolName, err))
		event, err = events.AppendToolResponse(into, r, h.Now())
	}
	return event, err
}

// failTooLarge makes r a response with an error instead of a result that the journal refuses.
func failTooLarge(r *events.ToolResponse) {
	fail(r, events.CodeTooLarge, "The response of tool "+r.ToolName+" is too large to store.")
}

// fail makes r a response with an error instead of a result.
func fail(r *events.ToolResponse, code events.Code, content string) {
	r.Status, r.Success, r.Code, r.Content = events.StatusError, false, code, content
	r.Payload, r.ContextKeys = failure(code, content), nil
}

// cancelledUnseen reports whether a turn was cancelled although no live copy of the cancel has stopped its run: the copy may
// have been lost. The journal is read only if the run began long ago.
func (h *Handlers) cancelledUnseen(t *turn, d idempotency.Decision, sinceBegun time.Duration) bool {
	if sinceBegun < longRun {
		return false
	}
	ctx, done := afterLease(t.m, lastTry)
	defer done()
	cancelled, err := h.Journal.Cancelled(ctx, d.Hold)
	return err == nil && cancelled
}

// logFailure logs that a tool failed, and the stack of a panic. The error text of the tool may hold data of the turn: it is
// in the response only.
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
	h.logThrottled(t.m, slog.LevelWarn, "tool failed; its response has the reason", string(out.Code), args...)
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
		h.logThrottled(t.m, slog.LevelWarn, "secret answers could not be erased; a sweep does it", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
		return
	}
	h.Logger.Debug("secret answers erased", "chat", t.Chat, "turn", t.CallID, "records", n)
}

// shrink makes a blob of a payload that is too large for a record. Most payloads are small and are returned unchanged.
func (h *Handlers) shrink(lease, tools context.Context, key subjects.Key, kind string, value any, data []byte) (any, error) {
	if h.Blobs.Inline(len(data)) {
		return value, nil
	}
	return h.outside(lease, tools, key, kind, data)
}

// outside makes a blob of a payload that a record cannot hold.
func (h *Handlers) outside(lease, tools context.Context, key subjects.Key, kind string, data []byte) (any, error) {
	if kind != events.KindText && (kind != events.KindToolCall || key.Call != subjects.SingleCall) { // those were counted with their message
		h.addStored(key.App, len(data))
	}
	ctx, done := store.Context(lease, tools)
	defer done()
	return h.Blobs.Shrink(ctx, key, kind, nil, data)
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

// unstorable returns the code with which a turn ends when the result or the changes of its tool are not stored because of
// err, "" when its message is redelivered instead.
func unstorable(t *turn, err error) events.Code {
	switch {
	case errors.Is(err, events.ErrStateCorrupt):
		return events.CodeStateCorrupt
	case store.Decided(err):
		return events.CodeTooLarge
	case errors.Is(err, ErrDraining) && t.Effect == bindings.EffectUnsafe: // no worker runs it again
		return events.CodeInterrupted
	}
	return ""
}

// redeliverTurn has the message of a turn redelivered whose reads or writes outside of the journal have no outcome.
func (h *Handlers) redeliverTurn(t *turn, what string, err error) inbound.Disposition {
	if absent, ok := errors.AsType[*absentWorkflowError](err); ok { // of the message that has made it
		return h.awaitWorkflow(t.m, absent)
	}
	h.logThrottled(t.m, slog.LevelWarn, "the message will be redelivered", what, "why", what, "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", events.LogText(err))
	if errors.Is(err, ErrDraining) {
		return inbound.NakAfter(0)
	}
	return inbound.Left()
}
