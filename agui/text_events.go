package agui

// Texts of agents, in pieces: start, contents, end; or chunks.

// TextMessageStart opens a message.
type TextMessageStart struct {
	MessageID     string `json:"messageId"`
	Role          Role   `json:"role,omitzero"` // assistant if empty; not tool
	Name          string `json:"name,omitzero"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*TextMessageStart) Type() EventType { return TypeTextMessageStart }

// MarshalJSON implements [Event].
func (e *TextMessageStart) MarshalJSON() ([]byte, error) {
	type fields TextMessageStart
	return encodeEvent(e.Type(), (*fields)(e))
}

// TextMessageContent appends to an open message.
type TextMessageContent struct {
	MessageID     string `json:"messageId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*TextMessageContent) Type() EventType { return TypeTextMessageContent }

// MarshalJSON implements [Event].
func (e *TextMessageContent) MarshalJSON() ([]byte, error) {
	type fields TextMessageContent
	return encodeEvent(e.Type(), (*fields)(e))
}

// TextMessageEnd closes a message.
type TextMessageEnd struct {
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*TextMessageEnd) Type() EventType { return TypeTextMessageEnd }

// MarshalJSON implements [Event].
func (e *TextMessageEnd) MarshalJSON() ([]byte, error) {
	type fields TextMessageEnd
	return encodeEvent(e.Type(), (*fields)(e))
}

// TextMessageChunk is start, content and end in one: the first chunk has the id, and the message is open until the next
// event of another kind.
type TextMessageChunk struct {
	MessageID     string `json:"messageId,omitzero"`
	Role          Role   `json:"role,omitzero"`
	Delta         string `json:"delta,omitzero"`
	Name          string `json:"name,omitzero"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*TextMessageChunk) Type() EventType { return TypeTextMessageChunk }

// MarshalJSON implements [Event].
func (e *TextMessageChunk) MarshalJSON() ([]byte, error) {
	type fields TextMessageChunk
	return encodeEvent(e.Type(), (*fields)(e))
}
