package events

import (
	"fmt"
	"strings"
	"time"
)

// DecodeMessage decodes an agent_message or user_message, in its envelope or bare. The names are the same as in [DecodeTurn]; the
// id of the message is message_id or id. The content is a text, or an object or list: of an agent one that the producer has parsed, of a user
// for example the parts of a message with images.
//
// Every error is an [ErrBadArgs] that names the field. A message without chat or id wraps a *[MissingFieldError].
func DecodeMessage(body []byte) (*AgentMessage, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	return m.AgentMessage()
}

// IsMessageKind reports whether messages of a kind are what an agent or a user wrote.
func IsMessageKind(kind string) bool { return kind == KindAgentMessage || kind == KindUserMessage }

// AgentMessage is [DecodeMessage] for an opened message.
func (m *Message) AgentMessage() (*AgentMessage, error) {
	user := m.Kind == KindUserMessage
	if !user {
		if err := m.want(KindAgentMessage); err != nil {
			return nil, err
		}
	}
	f := fields{data: m.Data, err: m.timestampErr}
	f.object("context")
	e := &AgentMessage{
		TurnID:           f.turnID("turn_idempotency_key", "context.turn_idempotency_key"),
		ID:               strings.Clone(f.id("message_id", "id")),
		User:             user,
		Workflow:         f.name("context.workflow_name", "workflow_name"),
		Agent:            f.name("agent", "agent_name"),
		Content:          m.Data["content"],
		FinishReason:     f.optionalText("finish_reason"),
		UserID:           f.id("context.user_id", "user_id"),
		TurnSequence:     f.count("context.turn_sequence"),
		ContextVariables: f.object("context.context_variables"),
		Timestamp:        m.Timestamp,
	}
	if e.TurnSequence == 0 {
		e.TurnSequence = f.count("turn_sequence")
	}
	e.Enterprise = f.id("context.app_id", "app_id") == "" && f.id("context.enterprise_id", "enterprise_id") != ""
	if e.UserID == "" {
		e.UserID = f.optionalID("context.context_variables.user_id")
	}
	if user {
		e.Agent = AgentUser
	}
	f.require(e.Chat, "chat_id", "context.chat_id or chat_id")
	f.require(e.ID, "message_id", "message_id or id")
	f.require(e.Agent, "agent", "agent or agent_name")
	switch e.Content.(type) {
	case string, map[string]any, []any:
	default:
		f.fail(wrongType("content", "a text, an object or a list", e.Content))
	}
	if e.Turn == "" {
		e.Turn = e.ID
	}
	if m.deepest > MaxDataDepth {
		f.shallow("content")
		f.shallow("context.context_variables")
	}
	if m.nodes > MaxDataNodes {
		f.fail(decodeError(fmt.Sprintf("the event holds more than %d values: store the data elsewhere and send a reference", MaxDataNodes)))
	}
	if f.err != nil {
		return nil, f.err
	}
	return e, nil
}

// EncodeMessage writes an agent_message or user_message in its envelope: what a publisher sends. It refuses what [DecodeMessage]
// would refuse.
func EncodeMessage(e *AgentMessage, now time.Time) ([]byte, error) {
	w := newWriter(nil, e.InboundKind(), 0)
	w.open("data")
	w.str("kind", e.InboundKind())
	if !e.User {
		w.optional("agent", e.Agent)
	}
	w.optional("message_id", e.ID)
	w.value("content", e.Content)
	w.optional("finish_reason", e.FinishReason)
	if e.Turn != e.ID {
		w.optional("turn_idempotency_key", e.Turn)
	}
	w.optional("run_id", e.Run)
	tenant := "app_id"
	if e.Enterprise {
		tenant = "enterprise_id"
	}
	w.contextOf(tenant, e.TurnID, e.Workflow, e.UserID)
	w.optionalInt("turn_sequence", e.TurnSequence)
	if e.ContextVariables != nil {
		w.value("context_variables", e.ContextVariables)
	}
	w.close() // context
	w.close()
	body, err := w.finish(now)
	if err != nil {
		return nil, err
	}
	if _, err := DecodeMessage(body); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return body, nil
}

// ReadText decodes a stored [Text], of an agent or of a user.
func ReadText(body []byte) (*Text, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	if m.Kind != KindText && m.Kind != KindUserMessage {
		return nil, m.wrongKind(KindText)
	}
	t := new(Text)
	return t, m.As(t)
}

// ReadHandoff decodes a stored [Handoff].
func ReadHandoff(body []byte) (*Handoff, error) { return read[Handoff](body, KindHandoff) }
