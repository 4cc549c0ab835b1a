package events

// ToolProgress is the live event `chat.tool_progress`: how far a call is.
type ToolProgress struct {
	Kind            string   `json:"kind"`
	ID              string   `json:"id"` // equals tool_call_id
	AppID           string   `json:"app_id"`
	ChatID          string   `json:"chat_id"`
	RunID           string   `json:"run_id,omitempty"`
	Turn            string   `json:"turn"`
	TurnSequence    int64    `json:"turn_sequence,omitempty"`
	Agent           string   `json:"agent"`
	ToolName        string   `json:"tool_name"`
	ToolCallID      string   `json:"tool_call_id"`     // of the call
	Corr            string   `json:"corr"`             // tool_call_id of the question or surface that it belongs to, else of the call
	ProgressPercent *float64 `json:"progress_percent"` // 0 to 100, nil when it is not known, see [Percent]
	StatusMessage   string   `json:"status_message"`
	WorkflowName    string   `json:"workflow_name"`
}

// Percent is p as progress_percent: at most 100, and nil when p is negative or no number.
func Percent(p float64) *float64 {
	if !(p >= 0) { // NaN is not known either
		return nil
	}
	p = min(p, 100)
	return &p
}

// RunComplete is the live event `chat.run_complete` of a turn that asked people: its run is
// over, for now or for good.
type RunComplete struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // equals tool_call_id
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	Turn         string `json:"turn"`
	TurnSequence int64  `json:"turn_sequence,omitempty"`
	Agent        string `json:"agent"`
	ToolCallID   string `json:"tool_call_id"` // of the call
	WorkflowName string `json:"workflow_name"`
	Status       int    `json:"status"`           // RunWaits or RunEnded
	Reason       string `json:"reason,omitempty"` // ReasonAwaitingInput when the run waits
}

// Values of `status` and `reason` in a [RunComplete].
const (
	RunWaits            = 0 // it continues after an answer
	RunEnded            = 1 // the turn has its response
	ReasonAwaitingInput = "awaiting_user_input"
)

// UIToolComplete is the live event `chat.ui_tool_complete` that MozaiksAI sent after the answer
// to an inline question. It is published for workflows with compat.events only.
type UIToolComplete struct {
	Kind     string `json:"kind"`
	AppID    string `json:"app_id"`
	ChatID   string `json:"chat_id"`
	EventID  string `json:"eventId"`    //nolint:tagliatelle // the name that it had; tool_call_id of the question
	UIToolID string `json:"ui_tool_id"` // its tool_name
	Display  string `json:"display"`    // inline
	Status   string `json:"status"`     // of the answer, "completed" if it has none
	Summary  string `json:"summary,omitempty"`
}

// UIToolDismiss is the live event `chat.ui_tool_dismiss` that MozaiksAI sent after the answer
// to a question that is not inline. It is published for workflows with compat.events only.
type UIToolDismiss struct {
	Kind     string `json:"kind"`
	AppID    string `json:"app_id"`
	ChatID   string `json:"chat_id"`
	EventID  string `json:"event_id"`   // tool_call_id of the question
	UIToolID string `json:"ui_tool_id"` // its tool_name
}
