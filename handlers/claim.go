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

// Step 6 of a turn: the event chat.tool_call as the claim, the key under which it is stored, the tool that it names, and
// the outcome of claims that fail.

// callEvent writes the event chat.tool_call, which is the claim, into a buffer.
func (h *Handlers) callEvent(ctx context.Context, t *turn, into []byte) ([]byte, error) {
	e := events.ToolCall{
		ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID,
		InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow, UserID: t.UserID, CorrectionOf: t.CorrectionOf, Usage: t.usage,
		Program: t.Program, Step: t.Step, Depth: t.Depth,
	}
	if t.Step == "" {
		e.ResumeOf, e.Rerun = t.ResumeOf, t.Rerun
	}
	if t.reject == nil && (t.Step != "" || t.Effect == events.EffectProgram) {
		e.Effect = t.Effect
	}
	e.Payload = events.ToolCallPayload{AgentName: t.Agent, InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow}
	if b := t.Binding; b != nil {
		e.ToolName, e.Display, e.DisplayType, e.Payload.Display = b.Tool, b.Display, b.Display, b.Display
		if b.Component != "" {
			e.ComponentType = &b.Component
		}
	}
	if t.reject != nil {
		e.Rejected, e.Code, e.Correcting = true, t.reject.code, t.reject.correcting
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
func (t *turn) response() events.ToolResponse {
	return events.ToolResponse{
		ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID,
		InteractionType: events.InteractionAutoTool, WorkflowName: t.Workflow, Attempts: int(t.attempts), DurationMS: t.ran.Milliseconds(),
		Program: t.Program, Step: t.Step, Depth: t.Depth, Usage: t.usage,
	}
}

// conflict makes a dead letter of a message whose turn key was used before with other data. It is never run under that
// key; a workflow may run it as a separate turn (`on_key_reuse: run`).
func (h *Handlers) conflict(t *turn) inbound.Disposition {
	h.Metrics.Conflicts.Inc()
	h.logThrottled(t.m, slog.LevelWarn, "turn key used again with other data", "", "workflow", throttle.Cut(t.Workflow), "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "seq", t.m.Lease.Seq)
	event, err := events.Encode(events.KindTurnConflict, &events.TurnConflict{
		Kind: events.KindTurnConflict, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn,
		Agent: t.Agent, WorkflowName: t.Workflow, Fingerprint: t.hash,
	}, h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(t.App, t.Chat, events.KindTurnConflict), event)
	}
	if err != nil {
		h.logThrottled(t.m, slog.LevelWarn, "turn_conflict could not be published", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID), "err", err)
	}
	return h.deadLetter(t.m, deadletter.ReasonConflict, fmt.Errorf(
		"turn key %.80q was used before in this chat with other data (fingerprint of this one %s): send a new turn key, or a run_id for each run of the chat, or set on_key_reuse: run in the workflow", t.TurnID.Turn, t.hash[:16]))
}

// checkSubject checks that the tokens of the subject match the ids in the body, so that rights on subjects are
// rights on tenants and chats.
func (h *Handlers) checkSubject(m *message, e *events.StructuredOutputReady) error {
	return h.checkTokens(m, e.InboundKind(), e.App, e.Workflow, e.Chat)
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
		return fmt.Errorf("the body belongs on subject %.300q, it was published on %.300q", h.Space.In(in.Pool, kind, app, workflow, chat), m.Subject)
	}
	return nil
}

// unknownWorkflowDelay is [Handlers.graceDelay] of a turn of a workflow that is unknown here, and logs its first delivery.
func (h *Handlers) unknownWorkflowDelay(t *turn) time.Duration {
	if t.m.deliveries() == 1 {
		h.logThrottled(t.m, slog.LevelWarn, "unknown workflow: the turn is offered to other workers", "", "chat", throttle.Cut(t.Chat), "turn", throttle.Cut(t.CallID),
			"grace", h.grace(), "reason", t.reject.content)
	}
	return h.graceDelay(t.m)
}

// claim writes the claim of a turn. A turn whose arguments are too large for a record is rejected.
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
		Fingerprint: t.hash, Trace: inbound.Trace(t.m.Header), NewOwner: (*newOwner)(h),
	}
	if t.origin != nil {
		c.Message = t.origin.key.Turn
	}
	if t.reject != nil {
		c.RejectCode = string(t.reject.code)
	} else {
		c.Effect, c.Digest = string(t.Effect), t.Binding.Digest
	}
	return h.Journal.Claim(t.m.Held, c)
}

// claimFailed settles a message whose claim failed: it is redelivered, because nothing is decided, unless the record can
// never be stored.
func (h *Handlers) claimFailed(t *turn, err error) inbound.Disposition {
	if errors.Is(err, idempotency.ErrRefused) {
		t.unclaimed = true
		return h.deadLetter(t.m, deadletter.ReasonTooLarge, err)
	}
	return h.redeliverTurn(t, "the turn could not be claimed", err)
}

// With `on_key_reuse: run` a turn key that is used again with other data is another turn. Under which of two keys the data
// of a message runs, the plain one or the one with its fingerprint (a reused key), is a separate record, see
// [idempotency.KeyChoice]: redeliveries and duplicates follow it, also when the claim of the first data has expired.

// claimKey claims a turn under the key of its data, the plain one or the reused one.
func (h *Handlers) claimKey(ctx context.Context, t *turn) (idempotency.Decision, error) {
	runs := h.runsOnReuse(t)
	choice, err := h.keyChoice(t, runs)
	switch {
	case errors.Is(err, idempotency.ErrDamaged): // it may have run under either key: it is not entered under the other one
		t.reject = reject(events.CodeStateCorrupt, errors.New("the journal record of the key of the turn cannot be read: it was not run"))
		choice.Reused = true
	case err != nil:
		return idempotency.Decision{}, err
	}
	if choice.Reused {
		t.useReusedKey()
		return h.claim(ctx, t)
	}
	decision, err := h.claim(ctx, t)
	if err != nil || decision.Action != idempotency.Conflict {
		return decision, err
	}
	if runs {
		err = h.Journal.MoveToReusedKey(t.m.Held, t.choiceClaim(), choice)
	} else if choice, err = h.Journal.ChosenKey(t.m.Held, t.choiceClaim(), t.reusedKey()); err == nil && !choice.Reused {
		return decision, nil
	}
	if err != nil {
		return idempotency.Decision{}, err
	}
	t.useReusedKey()
	return h.claim(ctx, t)
}

// keyChoice returns the key under which the data of t runs. Only a workflow that runs reused keys decides that. A
// workflow that refuses them by name, because it may have run them before, or that is unknown here, follows a stored
// decision; a workflow that does not mention them does so for a message that may have been claimed before.
func (h *Handlers) keyChoice(t *turn, runs bool) (idempotency.KeyChoice, error) {
	switch {
	case runs:
		return h.Journal.ChooseKey(t.m.Held, t.choiceClaim(), t.reusedKey())
	case t.Binding == nil || t.Binding.FollowKeyReuse || t.m.deliveries() > 1:
		return h.Journal.ChosenKey(t.m.Held, t.choiceClaim(), t.reusedKey())
	}
	return idempotency.KeyChoice{}, nil
}

// runsOnReuse reports whether the workflow of t runs reused keys. A turn that is rejected for its age
// or its deliveries has not been resolved. A second retry under one key is never run: it would run the same calls.
func (h *Handlers) runsOnReuse(t *turn) bool {
	if t.ResumeOf != "" {
		return false
	}
	b := t.Binding
	if b == nil {
		b, _ = resolve(h.Bindings(), t) // nil if unknown here: a stored decision is followed
	}
	return b != nil && b.RunOnKeyReuse
}

// choiceClaim is the claim of t as far as the choice of its key needs it.
func (t *turn) choiceClaim() idempotency.Claim {
	c := idempotency.Claim{Key: t.Key, Lease: t.m.Lease, Fingerprint: t.hash, Trace: inbound.Trace(t.m.Header)}
	if t.origin != nil {
		c.Message = t.origin.key.Turn
	}
	return c
}

// reusedKey is the key of t with its fingerprint.
func (t *turn) reusedKey() subjects.Key { return t.Key.Reuse(t.Run, t.TurnID.Turn, t.hash) }

// useReusedKey gives t its reused key, and the call id that belongs to it.
func (t *turn) useReusedKey() {
	t.Key = t.reusedKey()
	t.Name = t.Key.String()
	t.ref = idempotency.RefOf(t.Name, t.fingerprint)
	t.CallID = events.QualifiedCallID(t.TurnID.Turn, t.Key.Turn)
}

// Turns that no worker could claim.

// deadIfUnclaimed makes a dead letter of the message of a turn that no worker could even reject. A turn that was claimed is
// ended by the worker that receives it.
func (h *Handlers) deadIfUnclaimed(t *turn) (inbound.Disposition, bool) {
	claimed, err := h.claimedBefore(t)
	switch {
	case err != nil:
		return h.claimFailed(t, err), true
	case claimed:
		return inbound.Disposition{}, false
	}
	return h.deadUnclaimed(t, fmt.Errorf("delivered %d times, and no worker could claim it", t.m.Lease.Delivery)), true
}

// deadUnclaimed makes a dead letter of the message of a turn that no worker has claimed. A later delivery may claim it
// meanwhile: then this one is not acknowledged. The turn of an agent's message may still run: sweeps resume the message, and it may be
// published again.
func (h *Handlers) deadUnclaimed(t *turn, cause error) inbound.Disposition {
	t.m.mayHold = t.keys()
	if s := t.origin; s != nil {
		if t.m.unfinished = true; s.resumed {
			h.logThrottled(t.m, slog.LevelWarn, "the turn of a message cannot be claimed; the next sweep resumes the message", "", t.Attrs("err", events.LogText(cause))...)
			return h.ackUnlessLaterDelivery(t.m)
		}
	}
	if d := h.deadLetter(t.m, deadletter.ReasonUndeliverable, cause); d.Do != inbound.Ack {
		return d
	}
	return h.ackUnlessLaterDelivery(t.m)
}

// claimedBefore reports whether a worker has claimed the turn: such a turn gets its response whatever its workflow
// specifies. Only a redelivered one may have a claim, and the journal has it. A worker that claims it after this read ends
// it; if that worker dies, the sweep finds the turn.
func (h *Handlers) claimedBefore(t *turn) (bool, error) {
	if t.m.deliveries() == 1 {
		return false, nil
	}
	claims, err := h.Journal.Claims(t.m.Held, t.keys()...)
	if err != nil {
		return false, fmt.Errorf("read the claim of the turn: %w", err)
	}
	return slices.ContainsFunc(claims, func(c *idempotency.Record) bool { return c != nil && t.mayBeClaimOf(c) }), nil
}

// mayBeClaimOf reports whether a claim is, or may be, of the data of t, or of the message that has made t.
func (t *turn) mayBeClaimOf(claim *idempotency.Record) bool {
	if t.origin != nil && messageOf(claim) == t.origin.key.Turn {
		return true
	}
	return claim.Err != nil || claim.Meta.Fingerprint == "" || claim.Meta.Fingerprint == t.hash
}

// buffers are reused for the events that are written to the journal, which keeps no bytes of a stored record.
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

// resolve finds the binding of a turn. A plan runs with the workflow's tool for plans, else with what is bound to its
// model.
func resolve(set *bindings.Set, t *turn) (*bindings.Binding, error) {
	if !t.Plan { // of a retry, the turn that it retries has the binding
		return set.Resolve(t.Workflow, t.Agent, t.Model)
	}
	b, err := set.ResolvePlan(t.Workflow, t.Agent)
	if err == nil {
		return b, nil
	}
	if bound, errBound := set.Resolve(t.Workflow, t.Agent, t.Model); errBound == nil {
		return bound, nil
	}
	return nil, err
}

// findTool finds the invoker of the tool of a turn, and the version and effect that it knows. The tool is not called: an
// effect that only the tool can report may be unknown, and then the effect of the binding is the default for a new turn.
func (h *Handlers) findTool(t *turn) (err error) {
	t.Effect = t.Binding.Effect
	if t.Binding.Program != nil { // its steps have tools
		t.closes = true
		return nil
	}
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

// firstHeartbeat sends the first heartbeat of a message that has waited in the stream, once it is the lease of a turn
// whose tool may not be entered again: without it a new leader of the consumer redelivers the message immediately, and the
// worker that receives it ends the turn as interrupted. Turns of other tools run again then. Now is the time by the
// server's clock.
func firstHeartbeat(m *message, effect string, now time.Time) {
	if effect != string(bindings.EffectUnsafe) && effect != string(bindings.EffectReplay) || m.Refresh == nil || m.AckWait == nil {
		return
	}
	if now.Sub(m.Arrived) > m.AckWait()/3 {
		m.Refresh()
	}
}
