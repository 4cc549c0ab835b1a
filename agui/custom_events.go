package agui

// Events without a meaning in the protocol.

// Raw passes a provider's event on, next to the events with its meaning.
type Raw struct {
	Event         any    `json:"event"`
	Source        string `json:"source,omitzero"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*Raw) Type() EventType { return TypeRaw }

// MarshalJSON implements [Event].
func (e *Raw) MarshalJSON() ([]byte, error) {
	type fields Raw
	return encodeEvent(e.Type(), (*fields)(e))
}

// Custom is an extension of an application. Names begin with the vendor by convention; clients ignore unknown ones.
type Custom struct {
	Name          string `json:"name"`
	Value         any    `json:"value"` // null is written
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*Custom) Type() EventType { return TypeCustom }

// MarshalJSON implements [Event].
func (e *Custom) MarshalJSON() ([]byte, error) {
	type fields Custom
	return encodeEvent(e.Type(), (*fields)(e))
}
