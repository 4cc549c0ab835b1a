package agui

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
)

// Role is the role of a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleReasoning Role = "reasoning"
	RoleActivity  Role = "activity"
)

// Message is a message of any role.
type Message struct {
	ID      string
	Role    Role
	Name    string  // of user, assistant, system and developer
	Content Content // of all but activity; parts are for user and tool alone

	ToolCalls  []ToolCall // of assistant
	ToolCallID string     // of tool: the call that it answers
	Error      string     // of tool: why the call failed

	ActivityType string             // of activity
	Activity     stdjson.RawMessage // of activity: an object

	EncryptedValue string
	SubagentRunID  string
	Metadata       stdjson.RawMessage // an object
}

// ToolCall is a call in a message of an assistant.
type ToolCall struct {
	ID             string             `json:"id"`
	Type           string             `json:"type"` // "function", also if empty
	Function       FunctionCall       `json:"function"`
	EncryptedValue string             `json:"encryptedValue,omitzero"`
	Metadata       stdjson.RawMessage `json:"metadata,omitzero"` // an object
}

// FunctionCall is what is called.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON
}

// UserMessage returns a message of a user.
func UserMessage(id, text string) Message {
	return Message{ID: id, Role: RoleUser, Content: Text(text)}
}

// AssistantMessage returns a message of an assistant, with its calls. The text may be empty.
func AssistantMessage(id, text string, calls ...ToolCall) Message {
	return Message{ID: id, Role: RoleAssistant, Content: Text(text), ToolCalls: calls}
}

// ToolMessage returns the result of a call.
func ToolMessage(id, toolCallID, content string) Message {
	return Message{ID: id, Role: RoleTool, ToolCallID: toolCallID, Content: Text(content)}
}

// Call returns a call of a tool with arguments in JSON.
func Call(id, name, arguments string) ToolCall {
	return ToolCall{ID: id, Type: "function", Function: FunctionCall{Name: name, Arguments: arguments}}
}

// wireMessage is the JSON of a message. Content is a [Content], or the object of an activity.
type wireMessage[C any] struct {
	ID             string             `json:"id"`
	Role           Role               `json:"role"`
	Name           string             `json:"name,omitzero"`
	Content        C                  `json:"content,omitzero"`
	ToolCalls      []ToolCall         `json:"toolCalls,omitempty"`
	ToolCallID     *string            `json:"toolCallId,omitzero"`
	Error          string             `json:"error,omitzero"`
	ActivityType   *string            `json:"activityType,omitzero"`
	EncryptedValue string             `json:"encryptedValue,omitzero"`
	SubagentRunID  string             `json:"subagentRunId,omitzero"`
	Metadata       stdjson.RawMessage `json:"metadata,omitzero"`
}

// MarshalJSON writes the fields of the role: what it requires, also if empty, and nothing that it does not have.
func (m Message) MarshalJSON() ([]byte, error) {
	w := wireMessage[any]{
		ID: m.ID, Role: m.Role, Content: m.Content,
		EncryptedValue: m.EncryptedValue, SubagentRunID: m.SubagentRunID, Metadata: m.Metadata,
	}
	switch m.Role {
	case RoleUser, RoleSystem, RoleDeveloper:
		w.Name = m.Name
	case RoleAssistant:
		w.Name = m.Name
		if w.ToolCalls = functions(m.ToolCalls); m.Content.Parts == nil && m.Content.Text == "" {
			w.Content = nil
		}
	case RoleTool:
		w.ToolCallID, w.Error = &m.ToolCallID, m.Error
	case RoleActivity:
		w.ActivityType, w.Content, w.EncryptedValue = &m.ActivityType, m.Activity, ""
		if m.Activity == nil {
			w.Content = struct{}{}
		}
	case RoleReasoning:
	default:
		return nil, fmt.Errorf("encode message %.100q: unknown role %.20q", m.ID, m.Role)
	}
	if m.Content.Parts != nil && m.Role != RoleUser && m.Role != RoleTool {
		w.Content = m.Content.String()
	}
	b, err := json.Marshal(w, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("encode message %.100q: %w", m.ID, err)
	}
	return b, nil
}

// functions returns calls with the type that clients require.
func functions(calls []ToolCall) []ToolCall {
	typed := make([]ToolCall, len(calls))
	for i, call := range calls {
		typed[i] = call
		typed[i].Type = "function"
	}
	return typed
}

// UnmarshalJSON reads a message of any role. Unknown members are ignored, and null is an absent member.
func (m *Message) UnmarshalJSON(b []byte) error {
	var w wireMessage[stdjson.RawMessage]
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("read a message: %w", err)
	}
	*m = Message{
		ID: w.ID, Role: w.Role, Name: w.Name, ToolCalls: w.ToolCalls, Error: w.Error,
		EncryptedValue: w.EncryptedValue, SubagentRunID: w.SubagentRunID, Metadata: present(w.Metadata),
	}
	if w.ToolCallID != nil {
		m.ToolCallID = *w.ToolCallID
	}
	if w.ActivityType != nil {
		m.ActivityType = *w.ActivityType
	}
	if m.Role == RoleActivity {
		m.Activity = present(w.Content)
		return nil
	}
	if w.Content == nil {
		return nil
	}
	if err := m.Content.UnmarshalJSON(w.Content); err != nil {
		return &memberError{pointer: "/content", err: err}
	}
	return nil
}

// present returns nil for null.
func present(raw stdjson.RawMessage) stdjson.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
