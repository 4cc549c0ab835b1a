package agui

import stdjson "encoding/json"

// Why a run ended, and how its questions are answered.

// Types of outcomes.
const (
	OutcomeSuccess   = "success"
	OutcomeInterrupt = "interrupt"
	OutcomeCancelled = "cancelled" // from 1.0 on
	OutcomeSuspended = "suspended" // of subagents
)

// Outcome is why a run ended without an error. Make it with [Success], [Interrupted] or [Cancelled].
type Outcome struct {
	Type string `json:"type"`
	// PendingToolCallIDs are the calls of tools of the client that have no result, in order; from 1.0 on.
	PendingToolCallIDs []string `json:"pendingToolCallIds,omitempty"`
	// Interrupts are all open questions of the thread, also from earlier runs.
	Interrupts []Interrupt `json:"interrupts,omitempty"`
}

// Success returns the outcome of a run that has done what it could; pending calls are for the client to run.
func Success(pending ...string) *Outcome {
	return &Outcome{Type: OutcomeSuccess, PendingToolCallIDs: pending}
}

// Interrupted returns the outcome of a run that cannot continue without answers.
func Interrupted(open ...Interrupt) *Outcome {
	return &Outcome{Type: OutcomeInterrupt, Interrupts: open}
}

// Cancelled returns the outcome of a run that was stopped.
func Cancelled() *Outcome { return &Outcome{Type: OutcomeCancelled} }

// Reasons of interrupts that the specification names. Others are written vendor:name.
const (
	// ReasonToolCall asks to approve a call. CopilotKit then adds a tool message, which hides the call's result.
	ReasonToolCall = "tool_call"
	// ReasonInputRequired asks for data.
	ReasonInputRequired = "input_required"
	// ReasonConfirmation asks for a yes or no.
	ReasonConfirmation = "confirmation"
)

// Interrupt is a question that is open.
type Interrupt struct {
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	Message    string `json:"message,omitzero"`
	ToolCallID string `json:"toolCallId,omitzero"` // the call that asks
	// ResponseSchema is the JSON Schema of the answer, an object.
	ResponseSchema stdjson.RawMessage `json:"responseSchema,omitzero"`
	// ExpiresAt is in RFC 3339. Clients before 1.0 refuse to run a thread that has an expired interrupt.
	ExpiresAt     string         `json:"expiresAt,omitzero"`
	Metadata      map[string]any `json:"metadata,omitempty"`
	SubagentRunID string         `json:"subagentRunId,omitzero"`
}

// Statuses of answers.
const (
	ResumeResolved  = "resolved"
	ResumeCancelled = "cancelled"
)

// ResumeEntry answers an interrupt of an earlier run.
type ResumeEntry struct {
	InterruptID string             `json:"interruptId"`
	Status      string             `json:"status"`            // [ResumeResolved] or [ResumeCancelled]
	Payload     stdjson.RawMessage `json:"payload,omitzero"`  // any JSON; nil if absent
	Metadata    stdjson.RawMessage `json:"metadata,omitzero"` // an object
}
