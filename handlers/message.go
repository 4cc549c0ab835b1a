package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// A message of an agent or a user goes through five steps, in the order of the records in package idempotency:
//
//	1 decode (chatMessage)           a message that cannot be decoded, or is on the wrong subject, is a dead letter
//	2 read (message_read.go)         the object in its content, and whether frontends display it
//	3 claim (claimMessage)           the record is the event chat.text; everything after it is done from that record alone
//	4 follow (message_follow.go)     changed variables, the structured output, the turn
//	5 hand off (message_handoff.go)  the next speaker; of a message with a turn, by the worker that has ended it
//
// Each record is created once, and what changes variables is decided once, in the document of the chat. So a message that is
// delivered again, here or elsewhere, continues where records are missing, and is acknowledged after the last one.

// chatMessage is a message of an agent or a user, once its text is stored.
type chatMessage struct {
	*events.Text

	m      *message
	key    subjects.Key // of the message
	record idempotency.Record

	snapshot   map[string]any // of the context variables, nil if its event has none or is gone
	seen       map[string]any // all context variables as the tool of its turn had read them before it was parked, nil otherwise
	enterprise bool
	content    any               // the content, nil until it was read: the Text may have a blob
	object     any               // the structured output, likewise
	hasRead    bool              // the variables whose values tools read are stored
	decided    json.RawMessage   // the next speaker, nil until the document of the chat was asked
	resumed    bool              // what was delivered is not the message, but the resume of a sweep
	changes    *variables.Change // of the tool of its turn, which the handoff merges in its step; nil if there are none, or they are merged
	turnDone   bool              // what follows from the end of its turn is stored, or left to a correction
}

// chatMessage handles an agent_message or user_message.
func (h *Handlers) chatMessage(ctx context.Context, m *message, body *events.Message) inbound.Disposition {
	e, err := body.AgentMessage()
	if err != nil {
		return h.deadLetter(m, deadletter.DecodeReason(err), err)
	}
	if err := h.checkTokens(m, e.InboundKind(), e.App, e.Workflow, e.Chat); err != nil {
		return h.deadLetter(m, deadletter.ReasonSubjectMismatch, err)
	}
	agent, err := h.Bindings().Agent(e.Workflow, e.Agent)
	if errors.Is(err, bindings.ErrUnknownWorkflow) {
		if h.inGrace(m) {
			if d, requeued := h.requeue(m, h.graceDelay(m)); requeued {
				return d
			}
		}
		// It is stored all the same: a text is not lost because its workflow is.
		h.logThrottled(m, slog.LevelWarn, "a message of an unknown workflow is stored as a text, with an undecided handoff", "", "workflow", throttle.Cut(e.Workflow), "chat", throttle.Cut(e.Chat), "seq", m.Lease.Seq, "err", err)
		agent = bindings.Agent{Workflow: e.Workflow, Name: e.Agent, Visual: true}
	}
	if !m.Fresh() {
		return inbound.Left()
	}
	key := subjects.MessageKey(e.App, e.Chat, e.Run, e.ID)
	reserved, d, requeued := h.reserveMessageRoom(m, key)
	if requeued {
		return d
	}
	s, err := h.claimMessage(ctx, m, e, &agent)
	if err != nil || s.record.Meta.Lease != m.Lease { // nothing was stored, or it was before
		h.shares.Add(key.App, -reserved, h.Now())
	}
	var conflict *messageConflictError
	switch {
	case errors.As(err, &conflict):
		return h.messageConflict(m, e, conflict)
	case errors.Is(err, idempotency.ErrRefused), errors.Is(err, events.ErrTooLarge):
		return h.deadLetter(m, deadletter.ReasonTooLarge, err)
	case errors.Is(err, events.ErrStateCorrupt):
		return h.deadLetter(m, deadletter.ReasonStateCorrupt, err)
	case err != nil:
		return h.redeliver(m, "the message could not be stored", err)
	}
	return h.follow(ctx, s)
}

// messageConflictError is the error of a message whose id was used before with other content.
type messageConflictError struct{ fingerprint string }

// Error implements error.
func (e *messageConflictError) Error() string {
	return fmt.Sprintf("the id of the message was used before in this run of the chat with other content (fingerprint of this one %s): send each message with a separate id, or a run_id for each run of the chat", e.fingerprint[:16])
}

// claimMessage stores the text of a message, and returns the one that counts.
func (h *Handlers) claimMessage(ctx context.Context, m *message, e *events.AgentMessage, agent *bindings.Agent) (*chatMessage, error) {
	sum, err := e.Fingerprint()
	if err != nil {
		return nil, err
	}
	fingerprint := events.Hex(sum)
	s := &chatMessage{
		m: m, key: subjects.MessageKey(e.App, e.Chat, e.Run, e.ID), snapshot: e.ContextVariables, enterprise: e.Enterprise,
	}
	if m.deliveries() > 1 { // then it was probably read before
		switch s.record, err = h.Journal.TextOf(m.Held, s.key); {
		case err == nil:
			return s, h.takeStored(s, e, fingerprint)
		case !errors.Is(err, idempotency.ErrNotFound):
			return nil, err
		}
	}
	s.Text, s.object = h.read(e, agent)
	s.content = s.Content
	digest := h.Bindings().WorkflowDigest(e.Workflow)
	due := h.due(s.Text, agent, digest)
	if s.TurnSequence > 0 && (due != idempotency.DueNothing || len(s.Changes) > 0) {
		inOrder, err := h.Variables.InOrder(m.Held, s.AppID, s.ChatID, variables.Message{Run: s.RunID, Sequence: s.TurnSequence})
		switch {
		case store.Decided(err) && err != nil: // the document cannot be read; the text is stored all the same
			h.warnWithoutVariables(s, err)
		case err != nil:
			return nil, err
		default:
			s.OutOfOrder = !inOrder
		}
	}
	event, err := h.textEvent(ctx, s)
	if err != nil {
		return nil, err
	}
	s.hit(failpoint.BeforeText)
	s.record, err = h.Journal.ClaimMessage(m.Held, idempotency.MessageClaim{
		Key: s.key, Lease: m.Lease, Event: event, Fingerprint: fingerprint, Digest: digest, Due: due, Trace: inbound.Trace(m.Header),
	})
	switch {
	case err != nil:
		return nil, err
	case s.record.Time.IsZero(): // stored just now; its lease proves nothing: a server that has lost its leader may count a delivery twice
		h.countText(s, e)
		if agent.Unknown != "" {
			h.logThrottled(m, slog.LevelWarn, "a message of an agent that the manifests do not name is stored as a text", "", "workflow", throttle.Cut(s.WorkflowName),
				"agent", throttle.Cut(s.Agent), "chat", throttle.Cut(s.ChatID), "message", throttle.Cut(s.MessageID), "fix", agent.Unknown)
		}
		return s, nil
	}
	return s, h.takeStored(s, e, fingerprint)
}

// takeStored makes s the message whose text an earlier delivery has stored, perhaps with other manifests.
func (h *Handlers) takeStored(s *chatMessage, e *events.AgentMessage, fingerprint string) (err error) {
	if s.record.Meta.Fingerprint != fingerprint {
		return &messageConflictError{fingerprint: fingerprint}
	}
	h.countMessage(e, metrics.MessageDuplicate)
	if s.Text, err = events.ReadText(s.record.Data); err != nil {
		return &events.Error{Code: events.CodeStateCorrupt, Op: "read message", Msg: fmt.Sprintf("the stored text of message %.80q cannot be read", e.ID), Err: err}
	}
	s.content, s.object = nil, nil
	return nil
}

// due returns what follows from a message, given the digest of its manifests.
func (h *Handlers) due(t *events.Text, agent *bindings.Agent, digest string) string {
	turn, handoff := t.Turn != "", h.handsOff(agent.Workflow) || digest == ""
	switch {
	case turn && handoff:
		return idempotency.DueTurnHandoff
	case turn:
		return idempotency.DueTurn
	case handoff:
		return idempotency.DueHandoff
	}
	return idempotency.DueNothing
}

// textEvent writes the event of a message. What is too large for a record is stored outside of it, and from then on the message has
// its text as another worker would read it.
func (h *Handlers) textEvent(ctx context.Context, s *chatMessage) ([]byte, error) {
	kind := events.KindText
	if s.Agent == events.AgentUser {
		kind = events.KindUserMessage
	}
	var err error
	if s.Content, err = h.shrinkValue(ctx, s, events.KindText, s.Content); err != nil {
		return nil, err
	}
	if s.StructuredOutput != nil {
		if s.StructuredOutput, err = h.shrinkValue(ctx, s, events.KindStructuredOutput, s.StructuredOutput); err != nil {
			return nil, err
		}
	}
	return events.Encode(kind, s.Text, h.Now())
}

// maxInlineNodes is how many values the content of a message, or the object in it, has at most in the record. A text has both.
const maxInlineNodes = events.MaxDataNodes / 3

// shrinkValue returns a value as a record holds it.
func (h *Handlers) shrinkValue(ctx context.Context, s *chatMessage, kind string, value any) (any, error) {
	data, err := events.Canonicalize(value, len(s.m.Data))
	if err != nil {
		return nil, err
	}
	if _, nodes := events.Extent(value); nodes > maxInlineNodes {
		return h.outside(s.m.Held, ctx, s.key, kind, []byte(data))
	}
	return h.shrink(s.m.Held, ctx, s.key, kind, data, data)
}

// messageConflict reports a message whose id was used before with other content, and makes a dead letter of it.
func (h *Handlers) messageConflict(m *message, e *events.AgentMessage, conflict *messageConflictError) inbound.Disposition {
	h.Metrics.Conflicts.Inc()
	h.countMessage(e, metrics.MessageConflict)
	event, err := events.Encode(events.KindMessageConflict, &events.MessageConflict{
		Kind: events.KindMessageConflict, ID: e.ID, AppID: e.App, ChatID: e.Chat, RunID: e.Run, MessageID: e.ID,
		Agent: e.Agent, WorkflowName: e.Workflow, Fingerprint: conflict.fingerprint,
	}, h.Now())
	if err == nil {
		err = h.Live(h.Space.Live(e.App, e.Chat, events.KindMessageConflict), event)
	}
	if err != nil {
		h.logThrottled(m, slog.LevelWarn, "message_conflict could not be published", "", "chat", throttle.Cut(e.Chat), "message", throttle.Cut(e.ID), "err", err)
	}
	return h.deadLetter(m, deadletter.ReasonMessageConflict, conflict)
}

// hit is a point of a message where tests stop its worker.
func (s *chatMessage) hit(point string) {
	failpoint.Hit(point, string(events.EffectNone), s.key.String())
}
