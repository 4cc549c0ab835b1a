package events

import (
	"encoding/json"
	"fmt"
)

// VerdictCode says in one word what became of an answer. Codes never change their spelling.
type VerdictCode string

// The codes of a [Verdict].
const (
	VerdictAccepted  VerdictCode = "accepted"         // 200: it is the answer
	VerdictReplayed  VerdictCode = "replayed"         // 200: the same answer was accepted before
	VerdictForbidden VerdictCode = "forbidden"        // 403: the question is somebody else's
	VerdictUnknown   VerdictCode = "unknown"          // 404: there is no such question
	VerdictAnswered  VerdictCode = "already_answered" // 409: with another answer
	VerdictExpired   VerdictCode = "expired"          // 410: the time to answer is over
	VerdictCancelled VerdictCode = "cancelled"        // 410: the turn was cancelled
	VerdictClosed    VerdictCode = "closed"           // 410: the turn ended with the question open
	VerdictBusy      VerdictCode = "busy"             // 429: the question could not be looked for: too many are
	VerdictInvalid   VerdictCode = "invalid"          // 422: the answer does not fit the question, or is no answer
)

// Status returns the status of a code, in the numbers of HTTP; 0 for a code that is none.
func (c VerdictCode) Status() int {
	const ok, forbidden, unknown, conflict, gone, invalid, busy = 200, 403, 404, 409, 410, 422, 429
	switch c {
	case VerdictAccepted, VerdictReplayed:
		return ok
	case VerdictForbidden:
		return forbidden
	case VerdictUnknown:
		return unknown
	case VerdictAnswered:
		return conflict
	case VerdictExpired, VerdictCancelled, VerdictClosed:
		return gone
	case VerdictInvalid:
		return invalid
	case VerdictBusy:
		return busy
	default:
		return 0
	}
}

// Verdict is what became of an answer: the reply to whoever sent it. It is JSON without an
// envelope. It holds nothing of the answer.
type Verdict struct {
	Status     int         `json:"status"` // 200, 403, 404, 409, 410, 422 or 429
	Code       VerdictCode `json:"code"`
	Message    string      `json:"message"`          // for people
	Errors     any         `json:"errors,omitempty"` // of an invalid answer: its faults, without its values
	ToolCallID string      `json:"tool_call_id"`     // as the answer named the question
}

// NewVerdict returns the verdict of a code on the answer to a question.
func NewVerdict(code VerdictCode, toolCallID, message string) Verdict {
	return Verdict{Status: code.Status(), Code: code, Message: message, ToolCallID: toolCallID}
}

// OK reports whether the answer was accepted, now or before.
func (v *Verdict) OK() bool { return v.Code == VerdictAccepted || v.Code == VerdictReplayed }

// EncodeVerdict writes a verdict as canonical JSON.
func EncodeVerdict(v *Verdict) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, &Error{Code: CodeBadArgs, Op: opEncode, Msg: "verdict", Err: err}
	}
	return AppendJSON(nil, json.RawMessage(raw))
}

// DecodeVerdict reads a verdict. Every error is an [ErrBadArgs].
func DecodeVerdict(body []byte) (*Verdict, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	f := fields{data: m.Data}
	v := &Verdict{
		Status: int(f.integer("status")), Code: VerdictCode(f.text("code")), ToolCallID: f.callID("tool_call_id"), Errors: m.Data["errors"],
	}
	v.Message, _ = m.Data["message"].(string)
	if f.err == nil && (v.Code.Status() == 0 || v.Code.Status() != v.Status) {
		f.err = decodeError(fmt.Sprintf("no verdict has code %.80q and status %d", v.Code, v.Status))
	}
	if f.err != nil {
		return nil, f.err
	}
	return v, nil
}

// ToolCallRejected is the live event `chat.tool_call_rejected`, in the chat of the sender: an
// answer was not accepted.
type ToolCallRejected struct {
	Kind         string      `json:"kind"`
	ID           string      `json:"id"` // equals tool_call_id
	AppID        string      `json:"app_id"`
	ChatID       string      `json:"chat_id"` // of the sender
	RunID        string      `json:"run_id,omitempty"`
	ToolCallID   string      `json:"tool_call_id"` // as the answer named the question
	WorkflowName string      `json:"workflow_name"`
	UserID       string      `json:"user_id,omitempty"` // who sent the answer
	Status       int         `json:"status"`
	Code         VerdictCode `json:"code"`
	Message      string      `json:"message"`
	Errors       any         `json:"errors,omitempty"`
}

// Rejected is the live event that tells the sender of r of verdict v.
func (v *Verdict) Rejected(r *ToolCallResponse) *ToolCallRejected {
	return &ToolCallRejected{
		Kind: KindToolCallRejected, ID: r.ToolCallID, AppID: r.tenant(), ChatID: r.Chat, RunID: r.Run, ToolCallID: r.ToolCallID,
		WorkflowName: r.Workflow, UserID: r.UserID, Status: v.Status, Code: v.Code, Message: v.Message, Errors: v.Errors,
	}
}
