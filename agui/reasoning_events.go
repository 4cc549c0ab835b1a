package agui

// What a model thinks: spans, and messages in them.

// ReasoningStart opens a span, whose id may be the id of a message in it.
type ReasoningStart struct {
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ReasoningStart) Type() EventType { return TypeReasoningStart }

// MarshalJSON implements [Event].
func (e *ReasoningStart) MarshalJSON() ([]byte, error) {
	type fields ReasoningStart
	return encodeEvent(e.Type(), (*fields)(e))
}

// ReasoningMessageStart opens a reasoning message.
type ReasoningMessageStart struct {
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ReasoningMessageStart) Type() EventType { return TypeReasoningMessageStart }

// MarshalJSON implements [Event]. The role is a constant that clients require.
func (e *ReasoningMessageStart) MarshalJSON() ([]byte, error) {
	type fields ReasoningMessageStart
	return encodeEvent(e.Type(), &struct {
		Role   Role    `json:"role"`
		Fields *fields `json:",embed"`
	}{RoleReasoning, (*fields)(e)})
}

// ReasoningMessageContent appends to an open reasoning message.
type ReasoningMessageContent struct {
	MessageID     string `json:"messageId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ReasoningMessageContent) Type() EventType { return TypeReasoningMessageContent }

// MarshalJSON implements [Event].
func (e *ReasoningMessageContent) MarshalJSON() ([]byte, error) {
	type fields ReasoningMessageContent
	return encodeEvent(e.Type(), (*fields)(e))
}

// ReasoningMessageEnd closes a reasoning message.
type ReasoningMessageEnd struct {
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ReasoningMessageEnd) Type() EventType { return TypeReasoningMessageEnd }

// MarshalJSON implements [Event].
func (e *ReasoningMessageEnd) MarshalJSON() ([]byte, error) {
	type fields ReasoningMessageEnd
	return encodeEvent(e.Type(), (*fields)(e))
}

// ReasoningMessageChunk is start, content and end in one, as [TextMessageChunk].
type ReasoningMessageChunk struct {
	MessageID     string `json:"messageId,omitzero"`
	Delta         string `json:"delta,omitzero"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ReasoningMessageChunk) Type() EventType { return TypeReasoningMessageChunk }

// MarshalJSON implements [Event].
func (e *ReasoningMessageChunk) MarshalJSON() ([]byte, error) {
	type fields ReasoningMessageChunk
	return encodeEvent(e.Type(), (*fields)(e))
}

// ReasoningEnd closes a span.
type ReasoningEnd struct {
	MessageID     string `json:"messageId"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ReasoningEnd) Type() EventType { return TypeReasoningEnd }

// MarshalJSON implements [Event].
func (e *ReasoningEnd) MarshalJSON() ([]byte, error) {
	type fields ReasoningEnd
	return encodeEvent(e.Type(), (*fields)(e))
}

// ReasoningEncryptedValue attaches what a provider encrypted to a message or a call.
type ReasoningEncryptedValue struct {
	Subtype        string `json:"subtype"`  // "tool-call" or "message"
	EntityID       string `json:"entityId"` // of the call or message
	EncryptedValue string `json:"encryptedValue"`
	SubagentRunID  string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ReasoningEncryptedValue) Type() EventType { return TypeReasoningEncryptedValue }

// MarshalJSON implements [Event].
func (e *ReasoningEncryptedValue) MarshalJSON() ([]byte, error) {
	type fields ReasoningEncryptedValue
	return encodeEvent(e.Type(), (*fields)(e))
}
