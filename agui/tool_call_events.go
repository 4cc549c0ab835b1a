package agui

// Tool calls: start, arguments, end; the result follows in this run or a later one.

// ToolCallStart opens a call. Without a ParentMessageID clients create an assistant message for it whose id is ToolCallID.
type ToolCallStart struct {
	ToolCallID      string `json:"toolCallId"`
	ToolCallName    string `json:"toolCallName"`
	ParentMessageID string `json:"parentMessageId,omitzero"`
	SubagentRunID   string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ToolCallStart) Type() EventType { return TypeToolCallStart }

// MarshalJSON implements [Event].
func (e *ToolCallStart) MarshalJSON() ([]byte, error) {
	type fields ToolCallStart
	return encodeEvent(e.Type(), (*fields)(e))
}

// ToolCallArgs appends to the arguments of an open call, which are one JSON object in the end.
type ToolCallArgs struct {
	ToolCallID    string `json:"toolCallId"`
	Delta         string `json:"delta"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ToolCallArgs) Type() EventType { return TypeToolCallArgs }

// MarshalJSON implements [Event].
func (e *ToolCallArgs) MarshalJSON() ([]byte, error) {
	type fields ToolCallArgs
	return encodeEvent(e.Type(), (*fields)(e))
}

// ToolCallEnd closes a call: its arguments are complete.
type ToolCallEnd struct {
	ToolCallID    string `json:"toolCallId"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ToolCallEnd) Type() EventType { return TypeToolCallEnd }

// MarshalJSON implements [Event].
func (e *ToolCallEnd) MarshalJSON() ([]byte, error) {
	type fields ToolCallEnd
	return encodeEvent(e.Type(), (*fields)(e))
}

// ToolCallChunk is start, arguments and end in one: the first chunk has the id and the name, and the call is open until the
// next event of another kind.
type ToolCallChunk struct {
	ToolCallID      string `json:"toolCallId,omitzero"`
	ToolCallName    string `json:"toolCallName,omitzero"`
	ParentMessageID string `json:"parentMessageId,omitzero"`
	Delta           string `json:"delta,omitzero"`
	SubagentRunID   string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ToolCallChunk) Type() EventType { return TypeToolCallChunk }

// MarshalJSON implements [Event].
func (e *ToolCallChunk) MarshalJSON() ([]byte, error) {
	type fields ToolCallChunk
	return encodeEvent(e.Type(), (*fields)(e))
}

// ToolCallResult is the result of a call. Clients make a tool message with the id MessageID of it, each time they receive one.
type ToolCallResult struct {
	MessageID     string  `json:"messageId"`
	ToolCallID    string  `json:"toolCallId"`
	Content       Content `json:"content"` // parts need a peer of 1.0
	SubagentRunID string  `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ToolCallResult) Type() EventType { return TypeToolCallResult }

// MarshalJSON implements [Event].
func (e *ToolCallResult) MarshalJSON() ([]byte, error) {
	type fields ToolCallResult
	return encodeEvent(e.Type(), (*fields)(e))
}
