package agui

// The life of a run: it starts, has steps, and ends once.

// RunStarted begins a run: the first event of a stream, with the ids of the input.
type RunStarted struct {
	ThreadID        string         `json:"threadId"`
	RunID           string         `json:"runId"`
	ProtocolVersion string         `json:"protocolVersion,omitzero"` // [ProtocolVersion]; all clients accept it
	ParentRunID     string         `json:"parentRunId,omitzero"`     // the run that this one branches from
	Input           *RunAgentInput `json:"input,omitzero"`           // clients append the messages of it that they lack
	Base
}

// Type implements [Event].
func (*RunStarted) Type() EventType { return TypeRunStarted }

// MarshalJSON implements [Event].
func (e *RunStarted) MarshalJSON() ([]byte, error) {
	type fields RunStarted
	return encodeEvent(e.Type(), (*fields)(e))
}

// RunFinished ends a run that did not fail. Texts, calls, steps and subagents are closed before it.
type RunFinished struct {
	ThreadID string       `json:"threadId"`
	RunID    string       `json:"runId"`
	Result   any          `json:"result,omitempty"` // null and empty values are omitted
	Outcome  *Outcome     `json:"outcome,omitzero"` // nil is success
	Usage    []TokenUsage `json:"usage,omitempty"`
	Base
}

// Type implements [Event].
func (*RunFinished) Type() EventType { return TypeRunFinished }

// MarshalJSON implements [Event].
func (e *RunFinished) MarshalJSON() ([]byte, error) {
	type fields RunFinished
	return encodeEvent(e.Type(), (*fields)(e))
}

// RunError ends a run that failed. It may be the first event, and may leave texts, calls and steps open.
type RunError struct {
	Message string       `json:"message"`
	Code    string       `json:"code,omitzero"`
	Usage   []TokenUsage `json:"usage,omitempty"`
	Base
}

// Type implements [Event].
func (*RunError) Type() EventType { return TypeRunError }

// MarshalJSON implements [Event].
func (e *RunError) MarshalJSON() ([]byte, error) {
	type fields RunError
	return encodeEvent(e.Type(), (*fields)(e))
}

// StepStarted begins a named phase. A name can be open once for each subagent and once for the agent.
type StepStarted struct {
	StepName      string `json:"stepName"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*StepStarted) Type() EventType { return TypeStepStarted }

// MarshalJSON implements [Event].
func (e *StepStarted) MarshalJSON() ([]byte, error) {
	type fields StepStarted
	return encodeEvent(e.Type(), (*fields)(e))
}

// StepFinished ends a phase, with the name and subagent of its [StepStarted].
type StepFinished struct {
	StepName      string `json:"stepName"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*StepFinished) Type() EventType { return TypeStepFinished }

// MarshalJSON implements [Event].
func (e *StepFinished) MarshalJSON() ([]byte, error) {
	type fields StepFinished
	return encodeEvent(e.Type(), (*fields)(e))
}
