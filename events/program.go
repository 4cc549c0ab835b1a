package events

import "encoding/json"

// Events of a turn that is a program: its steps before the first of them, and how they ended. Each step has a
// [ToolCall] and a [ToolResponse], too.

// PlanStarted is the event `chat.plan_started`: the steps of a program are about to run. It is stored before the first
// step, and what it stores is what runs, whichever worker continues the program.
type PlanStarted struct {
	Kind         string      `json:"kind"`
	ID           string      `json:"id"` // equals tool_call_id
	AppID        string      `json:"app_id"`
	ChatID       string      `json:"chat_id"`
	RunID        string      `json:"run_id,omitempty"`
	Turn         string      `json:"turn"`
	TurnSequence int64       `json:"turn_sequence,omitempty"`
	Agent        string      `json:"agent"`
	ToolName     string      `json:"tool_name"`
	ToolCallID   string      `json:"tool_call_id"` // of the turn
	CallID       string      `json:"call_id"`
	Corr         string      `json:"corr"`
	WorkflowName string      `json:"workflow_name"`
	Payload      PlanPayload `json:"payload"`

	// ProgramData is the compiled program, for workers: a flow.Program, or the [Blob] that it is stored in.
	ProgramData json.RawMessage `json:"program_data"`
	// CopiedData is, for workers, what a retry has copied from the turn that it retries: a text, or the [Blob] that it is
	// stored in. Absent in any other turn.
	CopiedData json.RawMessage `json:"copied_data,omitempty"`
}

// PlanPayload is the `payload` of a [PlanStarted]: all that is needed to draw the program.
type PlanPayload struct {
	Reasoning string      `json:"reasoning,omitempty"` // of the model that wrote the plan
	Steps     []PlanStep  `json:"steps"`               // all calls, in the order of the program
	Groups    []PlanGroup `json:"groups,omitempty"`    // of calls that run at the same time
	Limits    PlanLimits  `json:"limits"`
}

// PlanStep is one call of a program.
type PlanStep struct {
	Call      string   `json:"call"` // its id in the program, see [StepID]
	ToolName  string   `json:"tool_name"`
	Arguments any      `json:"arguments"` // as written, with their references, or a [Blob]
	Needs     []string `json:"needs"`     // calls that the arguments refer to
	// Copied is set in a retry for a call that has ended in an earlier turn: it does not run again, and has no events in
	// this one.
	Copied *CopiedCall `json:"copied,omitempty"`
}

// CopiedCall is the end of a call in the turn that a retry retries, or in an earlier one.
type CopiedCall struct {
	From    string `json:"from"` // tool_call_id of the call that has run
	Success bool   `json:"success"`
	Code    Code   `json:"code,omitempty"`
}

// PlanGroup is a group of calls that run at the same time.
type PlanGroup struct {
	Call     string   `json:"call"`  // id of the group
	Type     string   `json:"type"`  // [GroupParallel]
	Merge    string   `json:"merge"` // how its value is made: collect or first_success
	Children []string `json:"children"`
}

// GroupParallel is the `type` of a [PlanGroup].
const GroupParallel = "parallel"

// PlanLimits are the limits of a program. A limit of 0 is not written.
type PlanLimits struct {
	Calls         int   `json:"calls,omitempty"`    // in all, also in programs inside it
	Steps         int   `json:"steps,omitempty"`    // of an orchestration
	Parallel      int   `json:"parallel,omitempty"` // calls of a group at the same time
	Depth         int   `json:"depth,omitempty"`    // of programs inside programs
	StepTimeoutMS int64 `json:"step_timeout_ms,omitempty"`
	TimeoutMS     int64 `json:"timeout_ms,omitempty"` // of the program, without the time that it waits for people
}

// PlanFinished is the event `chat.plan_finished`: the steps of a program have ended, and a model writes the answer. The
// response of the turn follows. A program without such an answer has only its response.
type PlanFinished struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // equals tool_call_id
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	Turn         string `json:"turn"`
	TurnSequence int64  `json:"turn_sequence,omitempty"`
	Agent        string `json:"agent"`
	ToolName     string `json:"tool_name"`
	ToolCallID   string `json:"tool_call_id"` // of the turn
	CallID       string `json:"call_id"`
	Corr         string `json:"corr"`
	WorkflowName string `json:"workflow_name"`
	Status       string `json:"status"` // these as in the response that follows
	Success      bool   `json:"success"`
	Content      string `json:"content"`
	Payload      any    `json:"payload"` // results of the steps (json.RawMessage), or a [Blob]
	Code         Code   `json:"code,omitempty"`
	DurationMS   int64  `json:"duration_ms"`
}

// ReadPlanStarted decodes a stored [PlanStarted].
func ReadPlanStarted(body []byte) (*PlanStarted, error) {
	return read[PlanStarted](body, KindPlanStarted)
}

// ReadPlanFinished decodes a stored [PlanFinished].
func ReadPlanFinished(body []byte) (*PlanFinished, error) {
	return read[PlanFinished](body, KindPlanFinished)
}
