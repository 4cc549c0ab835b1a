package events

import (
	"fmt"
	"strings"
)

// A turn is read field by field from an opened envelope, with the names of all generations; field_reader.go has
// the readers. The data itself is not touched: it stays as it came, or as a value tree.

// DefaultApp is the tenant of an event that names none.
const DefaultApp = "default"

// MaxDataDepth bounds the nesting of structured_data and context_variables, so that the
// events which carry them in their payload stay within [MaxDepth].
const MaxDataDepth = 56

// DecodeTurn decodes a structured_output_ready, plan_ready or retry event, in its envelope or bare, by the names
// of either generation (app_id or enterprise_id, agent_name or agent; in `context` or next to
// it). Keys match exactly; unknown ones are ignored.
//
// Every error is an [ErrBadArgs] that names the field. A turn without chat or turn key wraps
// a *[MissingFieldError]. An event whose auto_tool_mode is not the JSON value true is not a
// turn: it decodes whatever its other fields hold, with AutoToolMode false. A plan_ready and a retry event always are one.
func DecodeTurn(body []byte) (*StructuredOutputReady, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	switch m.Kind {
	case KindPlanReady:
		return m.PlanReady()
	case KindRetry:
		return m.Retry()
	case "", KindStructuredOutputReady:
		return m.Turn()
	}
	return nil, decodeError(fmt.Sprintf("kind is %.80q: expected one of %s, which start turns", m.Kind, strings.Join(turnKinds(), ", ")))
}

// Turn is [DecodeTurn] for an opened structured_output_ready message.
func (m *Message) Turn() (*StructuredOutputReady, error) {
	if err := m.want(KindStructuredOutputReady); err != nil {
		return nil, err
	}
	return m.startOfTurn("structured_data", false)
}

// PlanReady is [DecodeTurn] for an opened plan_ready message.
func (m *Message) PlanReady() (*StructuredOutputReady, error) {
	if err := m.want(KindPlanReady); err != nil {
		return nil, err
	}
	return m.startOfTurn("plan", true)
}

// startOfTurn reads the event that starts a turn, whose data has a name.
func (m *Message) startOfTurn(data string, plan bool) (*StructuredOutputReady, error) {
	f := fields{data: m.Data, err: m.timestampErr}
	f.object("context")
	t := &StructuredOutputReady{
		TurnID:           f.turnID("turn_idempotency_key", "context.turn_idempotency_key"),
		Workflow:         f.name("context.workflow_name", "workflow_name"),
		Agent:            f.name("agent_name", "agent"),
		Data:             m.Data[data],
		AutoToolMode:     plan || m.Data["auto_tool_mode"] == true,
		UserID:           f.id("context.user_id"),
		TurnSequence:     f.count("context.turn_sequence"),
		ContextVariables: f.object("context.context_variables"),
		CorrectionOf:     f.id("correction_of"),
		Timestamp:        m.Timestamp,
		Plan:             plan,
	}
	if t.Model = ModelPlan; !plan {
		t.Model = f.name("model_name")
	}
	t.Enterprise = f.id("context.app_id", "app_id") == "" && f.id("context.enterprise_id", "enterprise_id") != ""
	if t.UserID == "" {
		t.UserID = f.optionalID("context.context_variables.user_id")
	}
	if !t.AutoToolMode {
		return t, nil
	}
	f.require(t.Chat, "chat_id", "context.chat_id or chat_id")
	f.require(t.Turn, "turn_idempotency_key", "turn_idempotency_key or context.turn_idempotency_key")
	if m.deepest > MaxDataDepth {
		f.shallow(data)
		f.shallow("context.context_variables")
	}
	if m.nodes > MaxDataNodes {
		f.fail(decodeError(fmt.Sprintf("the event holds more than %d values: store the data elsewhere and send a reference", MaxDataNodes)))
	}
	if f.err != nil {
		return nil, f.err
	}
	return t, nil
}

// DecodeCancel decodes a cancel event, in its envelope or bare. The turn is named by `turn`,
// `turn_idempotency_key` or the `tool_call_id` of one of its events. It fails as
// [DecodeTurn] does.
func DecodeCancel(body []byte) (*Cancel, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	return m.Cancel()
}

// Cancel is [DecodeCancel] for an opened message.
func (m *Message) Cancel() (*Cancel, error) {
	if err := m.want(KindCancel); err != nil {
		return nil, err
	}
	f := fields{data: m.Data, err: m.timestampErr}
	f.object("context")
	c := &Cancel{
		TurnID:   f.turnID("turn", "turn_idempotency_key", "context.turn_idempotency_key"),
		Workflow: f.name("context.workflow_name", "workflow_name"),
		UserID:   f.id("context.user_id", "user_id"),
	}
	if c.Turn == "" {
		c.ToolCallID = strings.Clone(f.callID("tool_call_id"))
		c.Turn = turnOfCallID(c.ToolCallID, c.Run)
	}
	switch reason := m.Data["reason"].(type) {
	case nil:
	case string:
		c.Reason = reason
	default:
		f.fail(wrongType("reason", "a string", reason))
	}
	f.require(c.Chat, "chat_id", "context.chat_id or chat_id")
	f.require(c.Turn, "turn", "turn, turn_idempotency_key or tool_call_id")
	if f.err != nil {
		return nil, f.err
	}
	return c, nil
}

// turnID reads the identity of a turn. Its strings are copies: an identity outlives the body.
func (f *fields) turnID(turnPaths ...string) TurnID {
	id := TurnID{
		App:  f.id("context.app_id", "context.enterprise_id", "app_id", "enterprise_id"),
		Chat: strings.Clone(f.id("context.chat_id", "chat_id")),
		Run:  strings.Clone(f.id("run_id", "context.run_id")),
		Turn: strings.Clone(f.id(turnPaths...)),
	}
	if id.App == "" {
		id.App = DefaultApp
	}
	id.App = strings.Clone(id.App)
	return id
}
