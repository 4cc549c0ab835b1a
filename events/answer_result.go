package events

import (
	"encoding/json"
	"fmt"
)

// Each inbound answer has one result, which a worker sends to the sender's reply subject. The codes are part of
// the wire; the struct is what clients decode.

// AnswerCode is the outcome of an answer. Codes never change their spelling.
type AnswerCode string

// The codes of an [AnswerResult].
const (
	AnswerAccepted  AnswerCode = "accepted"         // 200: it is the answer
	AnswerReplayed  AnswerCode = "replayed"         // 200: the same answer was accepted before
	AnswerForbidden AnswerCode = "forbidden"        // 403: the question is for another user
	AnswerUnknown   AnswerCode = "unknown"          // 404: there is no such question
	AnswerConflict  AnswerCode = "already_answered" // 409: with another answer
	AnswerExpired   AnswerCode = "expired"          // 410: the time to answer is over
	AnswerCancelled AnswerCode = "cancelled"        // 410: the turn was cancelled
	AnswerClosed    AnswerCode = "closed"           // 410: the turn ended with the question open
	AnswerBusy      AnswerCode = "busy"             // 429: too many questions to search for this one
	AnswerInvalid   AnswerCode = "invalid"          // 422: the answer does not match the question, or is not an answer
)

// Status returns the HTTP status of a code; 0 if the code is unknown.
func (c AnswerCode) Status() int {
	const ok, forbidden, unknown, conflict, gone, invalid, busy = 200, 403, 404, 409, 410, 422, 429
	switch c {
	case AnswerAccepted, AnswerReplayed:
		return ok
	case AnswerForbidden:
		return forbidden
	case AnswerUnknown:
		return unknown
	case AnswerConflict:
		return conflict
	case AnswerExpired, AnswerCancelled, AnswerClosed:
		return gone
	case AnswerInvalid:
		return invalid
	case AnswerBusy:
		return busy
	default:
		return 0
	}
}

// AnswerResult is the reply to the sender of an answer. It is JSON without an envelope and contains
// nothing of the answer.
type AnswerResult struct {
	Status     int        `json:"status"` // 200, 403, 404, 409, 410, 422 or 429
	Code       AnswerCode `json:"code"`
	Message    string     `json:"message"`          // for people
	Errors     any        `json:"errors,omitempty"` // of an invalid answer: its violations, without its values
	ToolCallID string     `json:"tool_call_id"`     // as the answer named the question
}

// NewAnswerResult returns the result with a code for the answer to a question.
func NewAnswerResult(code AnswerCode, toolCallID, message string) AnswerResult {
	return AnswerResult{Status: code.Status(), Code: code, Message: message, ToolCallID: toolCallID}
}

// OK reports whether the answer was accepted, now or before.
func (r *AnswerResult) OK() bool { return r.Code == AnswerAccepted || r.Code == AnswerReplayed }

// EncodeAnswerResult writes a result as canonical JSON.
func EncodeAnswerResult(r *AnswerResult) ([]byte, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, &Error{Code: CodeBadArgs, Op: opEncode, Msg: "answer result", Err: err}
	}
	return AppendJSON(nil, json.RawMessage(raw))
}

// DecodeAnswerResult reads a result. Every error is an [ErrBadArgs].
func DecodeAnswerResult(body []byte) (*AnswerResult, error) {
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	f := fields{data: m.Data}
	r := &AnswerResult{
		Status: int(f.integer("status")), Code: AnswerCode(f.text("code")), ToolCallID: f.callID("tool_call_id"), Errors: m.Data["errors"],
	}
	r.Message, _ = m.Data["message"].(string)
	if f.err == nil && (r.Code.Status() == 0 || r.Code.Status() != r.Status) {
		f.err = decodeError(fmt.Sprintf("invalid answer result: code %.80q with status %d", r.Code, r.Status))
	}
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

// ToolCallRejected is the live event `chat.tool_call_rejected`, in the chat of the sender: an
// answer was not accepted.
type ToolCallRejected struct {
	Kind         string     `json:"kind"`
	ID           string     `json:"id"` // equals tool_call_id
	AppID        string     `json:"app_id"`
	ChatID       string     `json:"chat_id"` // of the sender
	RunID        string     `json:"run_id,omitempty"`
	ToolCallID   string     `json:"tool_call_id"` // as the answer named the question
	WorkflowName string     `json:"workflow_name"`
	UserID       string     `json:"user_id,omitempty"` // the sender of the answer
	Status       int        `json:"status"`
	Code         AnswerCode `json:"code"`
	Message      string     `json:"message"`
	Errors       any        `json:"errors,omitempty"`
}

// Rejected returns the live event that reports the result to the sender of a.
func (r *AnswerResult) Rejected(a *ToolCallResponse) *ToolCallRejected {
	return &ToolCallRejected{
		Kind: KindToolCallRejected, ID: a.ToolCallID, AppID: a.tenant(), ChatID: a.Chat, RunID: a.Run, ToolCallID: a.ToolCallID,
		WorkflowName: a.Workflow, UserID: a.UserID, Status: r.Status, Code: r.Code, Message: r.Message, Errors: r.Errors,
	}
}
