package agui

// Invocations of subagents. Clients before 0.0.59 reject these events.

// SubagentStarted begins an invocation, whose id is new in the run.
type SubagentStarted struct {
	SubagentRunID       string `json:"subagentRunId"`
	Name                string `json:"name"`
	Description         string `json:"description,omitzero"`
	ParentSubagentRunID string `json:"parentSubagentRunId,omitzero"`
	ParentToolCallID    string `json:"parentToolCallId,omitzero"`
	ParentMessageID     string `json:"parentMessageId,omitzero"`
	Base
}

// Type implements [Event].
func (*SubagentStarted) Type() EventType { return TypeSubagentStarted }

// MarshalJSON implements [Event].
func (e *SubagentStarted) MarshalJSON() ([]byte, error) {
	type fields SubagentStarted
	return encodeEvent(e.Type(), (*fields)(e))
}

// SubagentFinished ends an invocation in this run.
type SubagentFinished struct {
	SubagentRunID string           `json:"subagentRunId"`
	Result        any              `json:"result,omitempty"` // null and empty values are omitted
	Outcome       *SubagentOutcome `json:"outcome,omitzero"` // nil is success
	Base
}

// Type implements [Event].
func (*SubagentFinished) Type() EventType { return TypeSubagentFinished }

// MarshalJSON implements [Event].
func (e *SubagentFinished) MarshalJSON() ([]byte, error) {
	type fields SubagentFinished
	return encodeEvent(e.Type(), (*fields)(e))
}

// SubagentError ends an invocation that failed; the run continues.
type SubagentError struct {
	SubagentRunID string `json:"subagentRunId"`
	Message       string `json:"message"`
	Code          string `json:"code,omitzero"`
	Base
}

// Type implements [Event].
func (*SubagentError) Type() EventType { return TypeSubagentError }

// MarshalJSON implements [Event].
func (e *SubagentError) MarshalJSON() ([]byte, error) {
	type fields SubagentError
	return encodeEvent(e.Type(), (*fields)(e))
}

// SubagentOutcome is why an invocation ended in this run.
type SubagentOutcome struct {
	Type         string   `json:"type"`                   // [OutcomeSuccess] or [OutcomeSuspended]
	InterruptIDs []string `json:"interruptIds,omitempty"` // what a suspended invocation waits for
}
