package events

import "time"

// The inbound event of a turn as a struct, with what belongs to its identity, and the cancel that names the same
// identity. decode_turn.go reads it, encode.go writes it.

// TurnID is the identity of one agent turn: tenant, chat, optional run, turn key.
// Producers should send a run id: MozaiksAI repeats turn keys across runs of a chat.
type TurnID struct {
	App  string // app_id, older name enterprise_id; "default" when the producer sends none
	Chat string // chat_id
	Run  string // run_id, "" when the producer sends none
	Turn string // turn_idempotency_key
}

// StructuredOutputReady is the inbound event that starts a turn: an agent has finished with JSON that
// calls for a tool. A plan_ready event starts a turn as well: then Plan is true, Data the plan and Model [ModelPlan]. So does a
// retry event: then ResumeOf is set, and the worker takes agent, user and data from the turn that it names, see [NewRetry].
type StructuredOutputReady struct {
	TurnID
	Workflow         string         // context.workflow_name, "" when absent
	Agent            string         // agent_name, else agent
	Model            string         // model_name, "" when absent
	Data             any            // structured_data as decoded by Decode; may be any JSON value
	AutoToolMode     bool           // only the JSON value true is true
	UserID           string         // context.user_id, else context.context_variables.user_id
	Enterprise       bool           // the event names its tenant enterprise_id, not app_id
	TurnSequence     int64          // context.turn_sequence, 0 when absent
	ContextVariables map[string]any // snapshot of the context variables, nil when the event has none
	CorrectionOf     string         // turn key of the turn that this one corrects, "" when none
	Timestamp        time.Time      // timestamp of the envelope, zero when absent
	Plan             bool           // the event is plan_ready
	ResumeOf         string         // of a retry: turn key of the turn that it retries, in the same run; "" otherwise
	Rerun            []string       // of a retry: calls that run again although their effect may have happened, see [StepID]
}

// ModelPlan is the model of a turn that a plan_ready event starts.
const ModelPlan = "plan"

// InboundKind returns the kind of the event.
func (t *StructuredOutputReady) InboundKind() string {
	switch {
	case t.ResumeOf != "":
		return KindRetry
	case t.Plan:
		return KindPlanReady
	}
	return KindStructuredOutputReady
}

// Cancel is the inbound event that asks for the end of a turn.
type Cancel struct {
	TurnID
	Workflow string // context.workflow_name, needed for the subject
	Reason   string // shown in the response, may be empty
	UserID   string // the user that cancels, may be empty

	// ToolCallID is the tool_call_id of any event of the turn. It names the turn in place of its key, even if
	// that key was used before. [DecodeCancel] sets it if nothing else names the turn; Turn is then the key
	// that it implies, see [TurnOfCallID].
	ToolCallID string
}

// ToolCall is the event `chat.tool_call`: the claim of a turn, or what a tool displays. A question
// (awaiting_response) and a surface differ from a claim by their interaction_type; their ids are a
// [QuestionID], and Payload.Shown is what to show.
type ToolCall struct {
	Kind             string          `json:"kind"`
	ID               string          `json:"id"` // equals tool_call_id
	AppID            string          `json:"app_id"`
	ChatID           string          `json:"chat_id"`
	RunID            string          `json:"run_id,omitempty"`
	Turn             string          `json:"turn"`
	TurnSequence     int64           `json:"turn_sequence,omitempty"`
	Agent            string          `json:"agent"`
	ToolName         string          `json:"tool_name"`
	ToolCallID       string          `json:"tool_call_id"`
	CallID           string          `json:"call_id"`
	Corr             string          `json:"corr"`
	Program          string          `json:"program,omitempty"` // of a step of a program: tool_call_id of the turn
	Step             string          `json:"step,omitempty"`    // its id in the program, see [StepID]
	Depth            int             `json:"depth,omitempty"`   // 1 in the program of the turn, one more for each program around it
	AwaitingResponse bool            `json:"awaiting_response"`
	ComponentType    *string         `json:"component_type"`
	Display          string          `json:"display,omitempty"`
	DisplayType      string          `json:"display_type,omitempty"`
	InteractionType  string          `json:"interaction_type"`
	WorkflowName     string          `json:"workflow_name"`
	UserID           string          `json:"user_id,omitempty"`
	CorrectionOf     string          `json:"correction_of,omitempty"`
	Correcting       bool            `json:"correcting,omitempty"` // of a rejected turn: so has its response
	Usage            *Usage          `json:"usage,omitempty"`      // of the claim of a correction, likewise
	ResumeOf         string          `json:"resume_of,omitempty"`  // of the claim of a retry: turn key of the turn that it retries
	Rerun            []string        `json:"rerun,omitempty"`      // likewise: calls that run again although their effect may have happened
	Effect           Effect          `json:"effect,omitempty"`     // of a step of a program: effect of its tool when it was called
	Secret           bool            `json:"secret,omitempty"`     // the answer is: show no echo of it
	Answer           *AnswerTo       `json:"answer,omitempty"`     // of a question: how to answer it
	Rejected         bool            `json:"rejected,omitempty"`
	Code             Code            `json:"code,omitempty"` // why it was rejected
	Rejection        *Rejection      `json:"rejection,omitempty"`
	Payload          ToolCallPayload `json:"payload"`
}

// Rejection is the error of the response of a rejected turn. It is stored with the claim, so that a
// worker with other manifests finishes the turn with the same text.
type Rejection struct {
	Content string `json:"content"`
	Payload any    `json:"payload"`
}

// ToolCallPayload is the `payload` of a [ToolCall].
type ToolCallPayload struct {
	ToolArgs        any    `json:"tool_args"` // of a claim: mapped arguments, or a [Blob] when they are too large
	AgentName       string `json:"agent_name"`
	InteractionType string `json:"interaction_type"`
	WorkflowName    string `json:"workflow_name"`
	Display         string `json:"display,omitempty"`
	Mode            string `json:"mode,omitempty"` // of a question or surface: older name of display
	AgentMessage    string `json:"agent_message,omitempty"`

	// Shown is what the tool wants shown: its members are members of the payload. If it is not
	// nil, the payload belongs to a question or surface: ToolArgs and AgentMessage are then not
	// written, and agent_name, interaction_type, workflow_name, display and mode come from the event,
	// whatever Shown has under these names. [DecodeShown] makes it; for one that is too large it
	// is [Blob.Shown].
	Shown map[string]any `json:"-"`
}

// AnswerTo is the `answer` of a question: how to answer it.
type AnswerTo struct {
	Subject   string    `json:"subject"`             // to publish the tool_call_response to
	Schema    any       `json:"schema,omitempty"`    // JSON Schema that the value has to fit, nil for any value
	ExpiresAt time.Time `json:"expires_at,omitzero"` // end of the time to answer, in milliseconds
}

// Values of `interaction_type`.
const (
	InteractionAutoTool     = "auto_tool"
	InteractionUITool       = "ui_tool"
	InteractionUISurface    = "ui_surface"
	InteractionInputRequest = "input_request"
)

// ToolResponse is the event `chat.tool_response`: the one end of a turn.
type ToolResponse struct {
	Kind            string   `json:"kind"`
	ID              string   `json:"id"`
	AppID           string   `json:"app_id"`
	ChatID          string   `json:"chat_id"`
	RunID           string   `json:"run_id,omitempty"`
	Turn            string   `json:"turn"`
	TurnSequence    int64    `json:"turn_sequence,omitempty"`
	Agent           string   `json:"agent"`
	ToolName        string   `json:"tool_name"`
	ToolCallID      string   `json:"tool_call_id"`
	CallID          string   `json:"call_id"`
	Corr            string   `json:"corr"`
	Program         string   `json:"program,omitempty"` // these three as in the [ToolCall]
	Step            string   `json:"step,omitempty"`
	Depth           int      `json:"depth,omitempty"`
	Status          string   `json:"status"` // "ok" or "error"
	Success         bool     `json:"success"`
	Content         string   `json:"content"`
	InteractionType string   `json:"interaction_type"`
	WorkflowName    string   `json:"workflow_name"`
	Payload         any      `json:"payload"` // the tool's result (json.RawMessage), or a [Blob]
	Code            Code     `json:"code,omitempty"`
	Attempts        int      `json:"attempts"`
	DurationMS      int64    `json:"duration_ms"` // in the tool, not what it waited for a limit or a process
	ContextKeys     []string `json:"context_keys,omitempty"`
	// EffectState is what is known of the effect of the tool; a response without a code is written without it.
	EffectState EffectState `json:"effect_state,omitempty"`
	ArtifactID  string      `json:"artifact_id,omitempty"` // that the result of a step names
	SkillID     string      `json:"skill_id,omitempty"`    // likewise
	// Correcting is set if the agent's output could not be used and a model is asked to correct it: another turn follows, whose
	// correction_of is this one.
	Correcting bool   `json:"correcting,omitempty"`
	Usage      *Usage `json:"usage,omitempty"` // of a correction: of all corrections of the message so far
}

// FailureCode returns the code of a response without success, "" for one with success. A tool that has returned, and whose result
// reports a failure, has no code in its response: it counts as [CodeToolError].
func (r *ToolResponse) FailureCode() Code {
	if r.Code == "" && !r.Success {
		return CodeToolError
	}
	return r.Code
}

// Values of `status` in a [ToolResponse].
const (
	StatusOK    = "ok"
	StatusError = "error"
)

// Blob stands in a payload for a value that is stored in the blob object store because it
// is larger than the inline limit.
type Blob struct {
	Blob   string `json:"$blob"` // object name
	SHA256 string `json:"sha256"`
	Size   int    `json:"size"` // bytes
}

// TurnConflict is the live event `chat.turn_conflict`: a turn key was used again with other
// data. The second message is never run.
type TurnConflict struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"`
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	Turn         string `json:"turn"`
	Agent        string `json:"agent"`
	WorkflowName string `json:"workflow_name"`
	Fingerprint  string `json:"fingerprint"`
}

// ToolCallCancel is the event `chat.tool_call_cancel`: the turn was cancelled.
type ToolCallCancel struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // equals tool_call_id
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	Turn         string `json:"turn"`
	TurnSequence int64  `json:"turn_sequence,omitempty"`
	Agent        string `json:"agent,omitempty"`
	ToolCallID   string `json:"tool_call_id"`
	CallID       string `json:"call_id,omitempty"`
	Corr         string `json:"corr,omitempty"`
	WorkflowName string `json:"workflow_name"`
	Reason       string `json:"reason,omitempty"`
	UserID       string `json:"user_id,omitempty"` // the user that cancelled
}
