package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/engine"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/mutant"
	"github.com/oneturn/oneturn/tools"
)

// longRun is how long a tool must have run before its worker looks for a cancel whose live
// copy may have been lost. Shorter runs are not worth the read.
const longRun = time.Second

// lastWrite is how long a worker that has lost its lease still tries to store a result.
const lastWrite = 10 * time.Second

func (t *turn) policy() engine.Policy {
	return engine.Policy{MaxAttempts: t.binding.MaxAttempts, Timeout: t.binding.Timeout}
}

// toolCall builds what the tool gets.
func (h *Handlers) toolCall(t *turn, hold idempotency.Hold) (*tools.Call, error) {
	call := &tools.Call{
		Turn: t.TurnID, CallID: t.callID, Workflow: t.Workflow, Agent: t.Agent, UserID: t.UserID,
		Name: t.binding.Tool, Args: t.args, ArgsJSON: json.RawMessage(t.argsJSON), IdempotencyKey: events.IdempotencyKey(t.TurnID, t.callID),
		FencingToken: hold.Token, Epoch: hold.Epoch, MapArgs: t.binding.SignatureUnknown,
	}
	load := func(ctx context.Context) (map[string]any, error) {
		vars := t.ContextVariables
		if vars == nil {
			var err error
			if vars, err = h.Variables.Load(ctx, t.App, t.Chat); err != nil {
				return nil, err
			}
		}
		return t.binding.Context(t.StructuredOutputReady, vars), nil
	}
	switch {
	case !t.binding.AcceptsContext:
	case t.binding.Kind == bindings.KindGo:
		call.LoadContext = load // most Go tools never look
	default:
		var err error
		if call.Context, err = load(t.m.Held); err != nil {
			return nil, err
		}
	}
	return call, nil
}

// respond stores the outcome of a tool that was entered.
func (h *Handlers) respond(t *turn, hold idempotency.Hold, out engine.Outcome) Disposition {
	ctx, cancel := writing(t.m)
	defer cancel()
	keys, err := h.storeContext(ctx, t, hold, out)
	switch {
	case errors.Is(err, idempotency.ErrRefused):
		out, keys = engine.Failure(t.binding.Tool, tooLarge("context variables", err)), nil
	case err != nil:
		h.Logger.Warn("context changes could not be stored; the message comes back", "chat", t.Chat, "turn", t.callID, "err", err)
		return leave()
	}
	payload, err := h.Blobs.Shrink(ctx, t.key, events.KindToolResponse, out.Payload, out.Payload)
	if err != nil {
		h.Logger.Warn("the result could not be stored as a blob; the message comes back", "chat", t.Chat, "turn", t.callID, "err", err)
		return leave()
	}
	r := t.response()
	r.ToolName, r.Status, r.Success, r.Content, r.Code = t.binding.Tool, out.Status, out.Success, out.Content, out.Code
	r.Payload, r.Attempts, r.DurationMS, r.ContextKeys = payload, out.Attempts, out.Duration.Milliseconds(), keys
	return h.finish(ctx, t, hold, r)
}

// storeContext stores and merges what the tool changed in its context variables and returns
// their names.
func (h *Handlers) storeContext(ctx context.Context, t *turn, hold idempotency.Hold, out engine.Outcome) ([]string, error) {
	if len(out.Set) == 0 && len(out.Remove) == 0 {
		return nil, nil
	}
	delta := Delta{Set: out.Set, Remove: out.Remove}
	data, err := delta.encode()
	if err != nil {
		return nil, err
	}
	seq, err := h.Journal.Delta(ctx, hold, data)
	if err != nil {
		return nil, err
	}
	t.hit(failpoint.AfterDelta)
	if err := h.Variables.Merge(ctx, t.App, t.Chat, seq, delta); err != nil {
		return nil, err
	}
	t.hit(failpoint.AfterMerge)
	return slices.Sorted(maps.Keys(delta.names())), nil
}

// finish stores the response. The first stored response wins; a result that comes second is
// dropped and counted.
func (h *Handlers) finish(ctx context.Context, t *turn, hold idempotency.Hold, r *events.ToolResponse) Disposition {
	buffer := h.buffers.get()
	defer h.buffers.put(buffer)
	event, err := events.AppendToolResponse((*buffer)[:0], r, h.Now())
	if err != nil {
		fail(r, events.CodeToolError, "The result of tool "+r.ToolName+" has no JSON form.")
		if event, err = events.AppendToolResponse((*buffer)[:0], r, h.Now()); err != nil {
			h.Logger.Error("the response cannot be encoded; the message comes back", "turn", t.callID, "err", err)
			return leave()
		}
	}
	*buffer = event
	stored, err := h.Journal.Finish(ctx, hold, event)
	if errors.Is(err, idempotency.ErrRefused) && r.Code != events.CodeTooLarge {
		fail(r, events.CodeTooLarge, "The response of tool "+r.ToolName+" is too large to store.")
		return h.finish(ctx, t, hold, r)
	}
	if err != nil && !mutant.Planted(mutant.AckBeforePublish) {
		h.Logger.Warn("the response could not be stored; the message comes back", "chat", t.Chat, "turn", t.callID, "err", err)
		return leave()
	}
	t.hit(failpoint.AfterFinish)
	h.finished.add(t.ref)
	if !stored {
		h.Metrics.LateResults.Inc()
		h.Logger.Warn("the turn had a response already; the result is dropped", "chat", t.Chat, "turn", t.callID, "epoch", hold.Epoch)
		return ack()
	}
	outcome := string(r.Code)
	if outcome == "" {
		outcome = r.Status
	}
	h.Metrics.turn(t.binding, outcome)
	h.Metrics.TurnSeconds.Observe(h.Now().Sub(t.m.Stored).Seconds())
	if h.Logger.Enabled(ctx, slog.LevelDebug) {
		h.Logger.Debug("turn ended", "workflow", t.Workflow, "chat", t.Chat, "turn", t.callID, "outcome", outcome,
			"epoch", hold.Epoch, "ms", r.DurationMS)
	}
	return ack()
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
	ctx, cancel := writing(t.m)
	defer cancel()
	cancelled, err := h.Journal.Cancelled(ctx, d.Hold)
	return err == nil && cancelled
}

// writing is the context of records of finished work: it lives as long as the lease, and a
// little longer when that is gone, because only the write itself decides.
func writing(m *Message) (context.Context, context.CancelFunc) {
	if m.Held.Err() == nil {
		return m.Held, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(m.Held), lastWrite)
}
