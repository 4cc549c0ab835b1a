package handlers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// resume handles the wish that a turn be ended whose message is gone (design 5.16). The
// journal decides whether there is anything to do; anybody may ask.
func (h *Handlers) resume(ctx context.Context, m *Message, body *events.Message) Disposition {
	e, err := body.Resume()
	if err != nil {
		return h.dead(m, "", decodeReason(err), err)
	}
	key, err := h.resumeKey(m, e)
	if err != nil {
		return h.dead(m, e.App, reasonSubjectMismatch, err)
	}
	// Another worker may know the workflow, while this one could only end the turn.
	if e.Workflow != "" && h.Now().Sub(m.Stored) < h.BindingGrace && h.Bindings().WorkflowDigest(e.Workflow) == "" {
		return nakAfter(max(h.BindingGrace/graceNaks, time.Millisecond))
	}
	if !m.Fresh() {
		return leave()
	}
	decision, err := h.Journal.Resume(m.Held, idempotency.Resume{
		Key: key, Lease: m.Lease, Trace: traceOf(m.Header), Held: h.LeaseHeld,
		Expired: func(claimed time.Time) bool { return h.MaxTurnLife > 0 && m.Stored.Sub(claimed) > h.MaxTurnLife },
	})
	switch {
	case err != nil:
		h.Logger.Warn("the turn could not be resumed; the message comes back", "key", key.String(), "seq", m.Lease.Seq, "err", err)
		return leave()
	case decision.Action == idempotency.Leave:
		return leave()
	case decision.Action != idempotency.Run && decision.Action != idempotency.Conclude:
		h.Logger.Debug("nothing to resume", "key", key.String(), "seq", m.Lease.Seq)
		return ack()
	}
	if decision.Action == idempotency.Run {
		h.Metrics.Takeovers.Inc()
	}
	return h.goOn(ctx, m, e, decision)
}

// resumed goes on with a turn that the message of an answer, an expiry or a cancel has taken over
// after it was parked, or after the owner who was told has died: the decision is Run or Conclude,
// and the message is the lease of the turn until it has ended or is parked again.
func (h *Handlers) resumed(ctx context.Context, m *Message, d idempotency.Decision) Disposition {
	if d.Action == idempotency.Run {
		h.Metrics.Resumed.Inc()
	}
	return h.goOn(ctx, m, &events.Resume{}, d)
}

// goOn does what the journal has decided for a turn whose own message is gone.
func (h *Handlers) goOn(ctx context.Context, m *Message, e *events.Resume, d idempotency.Decision) Disposition {
	t, call := restore(m, e, d.Hold.Key, d.Turn.Claim)
	if call == nil { // whatever the headers say, it is never run
		return h.conclude(t, d, events.CodeStateCorrupt)
	}
	h.Logger.Info("turn resumed", "workflow", t.Workflow, "chat", t.Chat, "turn", t.callID, "action", d.Action.String(),
		"code", d.Code, "epoch", d.Hold.Epoch)
	t.binding = bindingOf(h.Bindings(), call)
	if d.Action == idempotency.Conclude {
		return h.conclude(t, d, d.Code)
	}
	return h.rerun(ctx, t, d, call)
}

// resumeKey returns the key of the turn that a resume names, and holds the subject against it.
func (h *Handlers) resumeKey(m *Message, e *events.Resume) (subjects.Key, error) {
	key := subjects.TurnKey(e.App, e.Chat, e.Run, e.Turn)
	if e.Key != "" {
		var ok bool
		if key, ok = subjects.ParseCall(e.Key); !ok || key.Call != subjects.SingleCall {
			return key, fmt.Errorf("key is %.300q, want <app>.<chat>.<turn>.%s in tokens", e.Key, subjects.SingleCall)
		}
	}
	in, ok := h.Space.ParseIn(m.Subject)
	want := subjects.Inbound{Pool: in.Pool, Kind: events.KindResume, App: key.App, Workflow: subjects.Token(e.Workflow), Chat: key.Chat}
	if !ok || in != want {
		return key, fmt.Errorf("a resume of turn %.300q does not belong on subject %.300q", key.String(), m.Subject)
	}
	return key, nil
}

// restore makes a turn of what its claim says. The call is nil when the claim cannot be read
// or does not belong under its key; then the ids are those of the resume and the key.
func restore(m *Message, e *events.Resume, key subjects.Key, claim *idempotency.Record) (*turn, *events.ToolCall) {
	call, reused := readCall(key, claim)
	if call == nil {
		ids := idsOf(key, e.TurnID)
		return &turn{
			StructuredOutputReady: &events.StructuredOutputReady{TurnID: ids, Workflow: e.Workflow},
			m:                     m, key: key, name: key.String(), callID: events.CallID(ids, key.Turn),
		}, nil
	}
	t := &turn{m: m, key: key, name: key.String(), StructuredOutputReady: &events.StructuredOutputReady{
		TurnID:   events.TurnID{App: call.AppID, Chat: call.ChatID, Run: call.RunID, Turn: call.Turn},
		Workflow: call.WorkflowName, Agent: call.Agent, AutoToolMode: true,
		UserID: call.UserID, TurnSequence: call.TurnSequence, CorrectionOf: call.CorrectionOf,
	}}
	t.callID = events.CallID(t.TurnID, key.Turn)
	if reused {
		t.callID = events.QualifiedCallID(t.Turn, key.Turn)
	}
	if sum, err := hex.DecodeString(claim.Meta.Fingerprint); err == nil {
		copy(t.fingerprint[:], sum)
	}
	t.ref = refOf(t.name, t.fingerprint)
	return t, call
}

// readCall reads the event of a claim, and reports whether its turn key had been used before.
// It returns nil when the event cannot be read or its ids do not lead to the key.
func readCall(key subjects.Key, claim *idempotency.Record) (call *events.ToolCall, reused bool) {
	body, err := events.Parse(claim.Data)
	if err != nil || body.Kind != events.KindToolCall {
		return nil, false
	}
	call = &events.ToolCall{}
	if body.As(call) != nil {
		return nil, false
	}
	plain := subjects.TurnKey(call.AppID, call.ChatID, call.RunID, call.Turn)
	if key == plain {
		return call, false
	}
	if key != plain.Reuse(call.RunID, call.Turn, claim.Meta.Fingerprint) {
		return nil, false
	}
	return call, true
}

// idsOf returns the ids behind a key as far as they are known: those given if they lead to
// it, else what its tokens say.
func idsOf(key subjects.Key, given events.TurnID) events.TurnID {
	id := func(token, given string) string {
		if subjects.Token(given) == token {
			return given
		}
		if text, _, err := subjects.Untoken(token); err == nil {
			return text
		}
		return token
	}
	ids := events.TurnID{App: id(key.App, given.App), Chat: id(key.Chat, given.Chat), Run: given.Run, Turn: given.Turn}
	if subjects.TurnToken(given.Run, given.Turn) != key.Turn {
		var ok bool
		if ids.Run, ids.Turn, ok = subjects.ParseTurnToken(key.Turn); !ok {
			ids.Turn = key.Turn
		}
	}
	return ids
}

// bindingOf finds what the manifests in force bind to a stored call, nil if nothing: the
// agent's own binding of the tool before one that only its model led to.
func bindingOf(set *bindings.Set, call *events.ToolCall) *bindings.Binding {
	var found *bindings.Binding
	for _, b := range set.Bindings() {
		if b.Tool != call.ToolName || !strings.EqualFold(b.Workflow, call.WorkflowName) {
			continue
		}
		if b.Agent == call.Agent {
			return b
		}
		if found == nil {
			found = b
		}
	}
	return found
}

// rerun enters the tool again with the arguments of the claim: the data they were made of is
// gone with its message. What cannot be run here ends as interrupted.
func (h *Handlers) rerun(ctx context.Context, t *turn, d idempotency.Decision, call *events.ToolCall) Disposition {
	interrupted := func(why string, err error) Disposition {
		h.Logger.Warn("the turn cannot run again", "why", why, "workflow", t.Workflow, "tool", call.ToolName, "chat", t.Chat,
			"turn", t.callID, "err", err)
		t.stuck = why
		return h.conclude(t, d, events.CodeInterrupted)
	}
	if t.binding == nil {
		return interrupted("no manifest has its tool", nil)
	}
	err := h.findTool(t)
	if err != nil {
		return interrupted("no tool", err)
	}
	reading, done := outside(t.m.Held, ctx)
	t.args, err = h.Blobs.Object(reading, t.key, events.KindToolCall, call.Payload.ToolArgs)
	if err == nil {
		err = h.unpark(reading, t, d.Turn.State())
	}
	done()
	switch {
	case errors.Is(err, errNoArgs):
		return interrupted("no arguments", err)
	case err != nil:
		return h.comesBack(t, "what the turn goes on with cannot be read", err)
	}
	return h.run(ctx, t, d)
}

// errNoArgs says that the arguments of a claim, or what was stored to go on with, are gone or not
// what the record names.
var errNoArgs = errors.New("the stored arguments are gone or damaged")

// Object implements [BlobStore]. Data that merely looks like a blob is data.
func (b *Blobs) Object(ctx context.Context, key subjects.Key, kind string, stored any) (map[string]any, error) {
	object, ok := stored.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: they are no object", errNoArgs)
	}
	name, _ := object["$blob"].(string)
	sum, _ := object["sha256"].(string)
	if len(object) != 3 || len(sum) != 64 || name != blobName(key.String()+"."+kind, sum) {
		return object, nil
	}
	err := b.Retries.until(ctx, b.bucket, name, func() error {
		data, err := b.get(ctx, name, sum)
		if err != nil {
			return err
		}
		tree, err := events.Decode(data)
		if object, ok = tree.(map[string]any); !ok {
			return fmt.Errorf("%w: blob %s is no object: %w", errNoArgs, name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return object, nil
}

// get reads a blob and checks that it is what its hash says.
func (b *Blobs) get(ctx context.Context, name, sum string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	data, err := b.store.GetBytes(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrDigestMismatch):
		return nil, fmt.Errorf("%w: blob %s: %w", errNoArgs, name, err)
	case err != nil:
		return nil, fmt.Errorf("read blob %s: %w", name, err)
	case hashOf(data) != sum:
		return nil, fmt.Errorf("%w: blob %s has another hash", errNoArgs, name)
	}
	return data, nil
}
