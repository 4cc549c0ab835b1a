package api

import (
	"time"

	"github.com/oneturn/oneturn/events"
)

// Step is the state of a step of a program that was called, or that a retry has copied. Its arguments and its result are in its
// events, which a copied step has in the turn of the call that has run.
type Step struct {
	Call       string      `json:"call"`         // its id in the program, as in chat.plan_started
	ToolCallID string      `json:"tool_call_id"` // of its events, "" for a copied step
	Tool       string      `json:"tool_name"`
	Depth      int         `json:"depth"`  // 1 in the program of the turn, one more for each program around it
	Effect     string      `json:"effect"` // of its tool
	State      StepState   `json:"state"`
	Success    bool        `json:"success"`            // it has ended, and succeeded
	Code       events.Code `json:"code,omitempty"`     // why it has ended without a result
	Attempts   int         `json:"attempts,omitempty"` // how often its tool was entered by the worker that has ended it
	DurationMS int64       `json:"duration_ms"`        // in the tool
	CalledAt   time.Time   `json:"called_at,omitzero"`
	EndedAt    time.Time   `json:"ended_at,omitzero"`
	// CopiedFrom is set for a copied step: tool_call_id of the call that has run.
	CopiedFrom string `json:"copied_from,omitempty"`
	// OpenQuestions are the ids of the questions that it waits for.
	OpenQuestions []string `json:"open_questions,omitempty"`
}

// StepState is the state of a [Step].
type StepState string

// The states of a step.
const (
	StepRunning StepState = "running"
	StepWaiting StepState = "waiting" // for the answers to its open questions
	StepEnded   StepState = "ended"   // its response is stored
	StepClosed  StepState = "closed"  // the turn has ended, and the step has no response
	StepCopied  StepState = "copied"  // in a retry: it keeps the end that it had in an earlier turn, and does not run
)
