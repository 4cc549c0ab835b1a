package handlers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// callEvent writes the event chat.tool_call, which is the claim, into a buffer.
func (h *Handlers) callEvent(ctx context.Context, t *turn, into []byte) ([]byte, error) {
	e := events.ToolCall{
		ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID,
		InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow, UserID: t.UserID, CorrectionOf: t.CorrectionOf,
	}
	e.Payload = events.ToolCallPayload{AgentName: t.Agent, InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow}
	if b := t.Binding; b != nil {
		e.ToolName, e.Display, e.DisplayType, e.Payload.Display = b.Tool, b.Display, b.Display, b.Display
		if b.Component != "" {
			e.ComponentType = &b.Component
		}
	}
	if t.reject != nil {
		e.Rejected, e.Code = true, t.reject.code
		e.Rejection = &events.Rejection{Content: t.reject.content, Payload: t.reject.payload}
		e.Payload.ToolArgs = map[string]any{}
	} else {
		args, err := h.shrink(t.m.Held, ctx, t.Key, events.KindToolCall, t.argsJSON, t.argsJSON)
		if err != nil {
			return nil, err
		}
		e.Payload.ToolArgs = args
		if message, ok := t.args["agent_message"].(string); ok {
			e.Payload.AgentMessage = events.Clip(strings.TrimSpace(message))
		}
	}
	return events.AppendToolCall(into, &e, h.Now())
}

// response returns a tool_response with everything that does not depend on the outcome.
func (t *turn) response() *events.ToolResponse {
	return &events.ToolResponse{
		ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID,
		InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow, Attempts: t.attempts, DurationMS: t.ran.Milliseconds(),
	}
}

// conflict ends a message whose turn key was used before with other data. It is never run
// under that key; a workflow may ask for it to be a turn of its own.
func (h *Handlers) conflict(t *turn) inbound.Disposition {
	h.Metrics.Conflicts.Inc()
	h.often(t.m, slog.LevelWarn, "turn key used again with other data", "", "workflow", throttle.Cut(t.Workflow), "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "seq", t.m.Lease.Seq)
	event, err := events.Encode(events.KindTurnConflict, &events.TurnConflict{
		Kind: events.KindTurnConflict, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn,
		Agent: t.Agent, WorkflowName: t.Workflow, Fingerprint: t.hash,
	}, h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(t.App, t.Chat, events.KindTurnConflict), event)
	}
	if err != nil {
		h.often(t.m, slog.LevelWarn, "turn_conflict could not be published", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
	}
	return h.dead(t.m, deadletter.ReasonConflict, fmt.Errorf(
		"turn key %.80q was used before in this chat with other data (fingerprint of this one %s): send a new turn key, or a run_id for each run of the chat, or set on_key_reuse: run in the workflow", t.TurnID.Turn, t.hash[:16]))
}

// checkSubject holds the tokens of the subject against the ids of the body, so that rights on
// subjects are rights on tenants and chats.
func (h *Handlers) checkSubject(m *message, e *events.StructuredOutputReady) error {
	return h.checkTokens(m, events.KindStructuredOutputReady, e.App, e.Workflow, e.Chat)
}

func (h *Handlers) checkTokens(m *message, kind, app, workflow, chat string) error {
	in, ok := h.Space.ParseIn(m.Subject)
	if !ok {
		return fmt.Errorf("subject %.200q is not <prefix>.in.<pool>.<kind>.<app>.<workflow>.<chat>", m.Subject)
	}
	want := subjects.Inbound{
		Pool: in.Pool, Kind: kind, App: subjects.Token(app), Workflow: subjects.Token(workflow), Chat: subjects.Token(chat),
	}
	if in != want {
		return fmt.Errorf("the body belongs on subject %.300q, it came on %.300q", h.Space.In(in.Pool, kind, app, workflow, chat), m.Subject)
	}
	return nil
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

// unclaimed decides on a message whose claim failed. Nothing was decided, so it comes back,
// except when the record can never be stored.
func (h *Handlers) unclaimed(t *turn, err error) inbound.Disposition {
	if errors.Is(err, idempotency.ErrRefused) {
		return h.dead(t.m, deadletter.ReasonTooLarge, err)
	}
	return h.comesBack(t, "the turn could not be claimed", err)
}

// With `on_key_reuse: run` a turn key that comes again with other data is another turn. Which of the
// two keys the data of a message runs under, the plain one or one that its fingerprint completes, is a
// record of its own, see [idempotency.KeyChoice]: redeliveries and duplicates follow it, whatever has
// become of the claim of the first data.

// claimPlaced claims a turn under the key that its data has.
func (h *Handlers) claimPlaced(ctx context.Context, t *turn) (idempotency.Decision, error) {
	runs := h.runsOnReuse(t)
	place, err := h.place(t, runs)
	switch {
	case errors.Is(err, idempotency.ErrDamaged): // it may run under either key, and is never entered under another
		t.reject = reject(events.CodeStateCorrupt, errors.New("the journal record of where the turn runs cannot be read: it was not run"))
		place.Reused = true
	case err != nil:
		return idempotency.Decision{}, err
	}
	if place.Reused {
		t.reuse()
		return h.claim(ctx, t)
	}
	decision, err := h.claim(ctx, t)
	if err != nil || decision.Action != idempotency.Conflict {
		return decision, err
	}
	if runs {
		err = h.Journal.MoveToReusedKey(t.m.Held, t.placing(), place)
	} else if place, err = h.Journal.ChosenKey(t.m.Held, t.placing(), t.ownKey()); err == nil && !place.Reused {
		return decision, nil
	}
	if err != nil {
		return idempotency.Decision{}, err
	}
	t.reuse()
	return h.claim(ctx, t)
}

// place returns where the data of t runs. Only a workflow that runs reused keys decides that. One that refuses
// them by name, because it may have run them before, or that is unknown here, follows what was decided; one
// that does not mention them does so for a message that may have been claimed before.
func (h *Handlers) place(t *turn, runs bool) (idempotency.KeyChoice, error) {
	switch {
	case runs:
		return h.Journal.ChooseKey(t.m.Held, t.placing(), t.ownKey())
	case t.Binding == nil || t.Binding.FollowKeyReuse || t.m.offers() > 1:
		return h.Journal.ChosenKey(t.m.Held, t.placing(), t.ownKey())
	}
	return idempotency.KeyChoice{}, nil
}

// runsOnReuse reports whether the workflow of t runs reused keys. A turn that is rejected for its age
// or its deliveries has not been resolved.
func (h *Handlers) runsOnReuse(t *turn) bool {
	b := t.Binding
	if b == nil {
		b, _ = h.Bindings().Resolve(t.Workflow, t.Agent, t.Model) // unknown here: what was decided is followed
	}
	return b != nil && b.RunOnKeyReuse
}

// placing is the claim of t as far as its place goes.
func (t *turn) placing() idempotency.Claim {
	return idempotency.Claim{Key: t.Key, Lease: t.m.Lease, Fingerprint: t.hash, Trace: inbound.Trace(t.m.Header)}
}

// ownKey is the key that the fingerprint of t completes.
func (t *turn) ownKey() subjects.Key { return t.Key.Reuse(t.Run, t.TurnID.Turn, t.hash) }

// reuse gives t the key and the call id that its fingerprint completes.
func (t *turn) reuse() {
	t.Key = t.ownKey()
	t.Name = t.Key.String()
	t.ref = idempotency.RefOf(t.Name, t.fingerprint)
	t.CallID = events.QualifiedCallID(t.TurnID.Turn, t.Key.Turn)
}

// The outcome of a turn that no worker could claim.

// givenUp makes a dead letter of the message of a turn that no worker could even reject. One that was
// claimed is ended by the worker that gets it.
func (h *Handlers) givenUp(t *turn) (inbound.Disposition, bool) {
	claimed, err := h.claimedBefore(t)
	switch {
	case err != nil:
		return h.unclaimed(t, err), true
	case claimed:
		return inbound.Disposition{}, false
	}
	return h.deadUnclaimed(t, fmt.Errorf("delivered %d times, and no worker could claim it", t.m.Lease.Delivery)), true
}

// deadUnclaimed makes a dead letter of the message of a turn that no worker has claimed. A later delivery may claim it
// meanwhile: then the message is left to that one.
func (h *Handlers) deadUnclaimed(t *turn, cause error) inbound.Disposition {
	t.m.turns = t.keys()
	if d := h.dead(t.m, deadletter.ReasonUndeliverable, cause); d.Do != inbound.Ack {
		return d
	}
	return h.ackUnlessHeldLater(t.m)
}

// claimedBefore reports whether a worker has claimed the turn: one that was is ended whatever the
// workflow says. Only a redelivered one may have been, and the journal knows. A worker that claims
// it after this look, late, ends it itself; if it dies, the sweep finds the turn.
func (h *Handlers) claimedBefore(t *turn) (bool, error) {
	if t.m.offers() == 1 {
		return false, nil
	}
	claims, err := h.Journal.Claims(t.m.Held, t.keys()...)
	if err != nil {
		return false, fmt.Errorf("look whether the turn was claimed: %w", err)
	}
	return slices.ContainsFunc(claims, func(c *idempotency.Record) bool { return c != nil && t.mayBe(c) }), nil
}

// mayBe reports whether a claim is of the data of t, or does not tell.
func (t *turn) mayBe(claim *idempotency.Record) bool {
	return claim.Err != nil || claim.Meta.Fingerprint == "" || claim.Meta.Fingerprint == t.hash
}

// buffers are used in turn by the events on their way to the journal, which keeps no bytes of
// a record that it has stored.
type buffers struct{ pool sync.Pool }

// maxBuffer is the capacity in bytes from which a buffer is left to the collector.
const maxBuffer = 64 << 10

func (b *buffers) get() *[]byte {
	if buffer, ok := b.pool.Get().(*[]byte); ok {
		return buffer
	}
	return new([]byte)
}

func (b *buffers) put(buffer *[]byte) {
	if cap(*buffer) <= maxBuffer {
		b.pool.Put(buffer)
	}
}

// findTool finds what runs the tool of a turn, and what that reports about itself. The tool is not called: what it
// has not learned yet does not count for this turn. An effect that only the tool can report is unknown then, and the
// effect of the binding is the default for a new turn.
func (h *Handlers) findTool(t *turn) (err error) {
	t.Effect = t.Binding.Effect
	if t.Tool, err = h.Tool(t.Binding); err != nil {
		return err
	}
	describer, ok := t.Tool.(tools.Describer)
	if !ok {
		return nil
	}
	known, ok := describer.Known()
	t.effectUnknown = !ok && t.Binding.DiscoversEffect()
	if ok {
		t.Version = known.Version
		if known.Effect != "" && !t.Binding.EffectDeclared {
			t.Effect = bindings.Effect(known.Effect)
		}
	}
	return nil
}
