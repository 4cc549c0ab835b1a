package events

import (
	"fmt"
	"strings"
	"time"
)

// An answer comes in today's shape or in a shape of MozaiksAI's frontends. [Message.Answer] reads all of them into
// one [ToolCallResponse]; whether it fits its question is checked in internal/answers.

// MaxAnswerBytes bounds an inbound answer: the whole message, with its envelope.
const MaxAnswerBytes = 1 << 20

// ToolCallResponse is the inbound event that answers a question, of whatever generation.
type ToolCallResponse struct {
	TurnID            // Turn is "" unless the sender names it; the question's id leads to it
	Workflow   string // context.workflow_name, needed for the subject
	ToolCallID string // of the question, see [ParseQuestionID]
	UserID     string // the user that answers, "" if the sender does not name one
	Value      any    // the answer, any value tree
}

// DecodeAnswer decodes an answer, in its envelope, bare, or as a MozaiksAI frontend sends it:
// flat, next to its type. Its kind is tool_call_response, ui_tool_response, ui_tool_dismiss,
// ui_tool_complete or user.input.submit (also user_input_submit).
//
// The question is the first that is there of tool_call_id, eventId, event_id, request_id, corr,
// ui_tool_id and call_id. The value is the first that is there, and not null, of response,
// payload, response_data, result and text, else null if one of them is null. Without any, a
// dismissal means {"status":"dismissed"} and an answer with a status {"status":<it>}.
//
// Every error is an [ErrBadArgs] that names the field, or an [ErrTooLarge] for more than
// [MaxAnswerBytes]. An answer without chat, question or value wraps a *[MissingFieldError].
func DecodeAnswer(body []byte) (*ToolCallResponse, error) {
	if len(body) > MaxAnswerBytes {
		return nil, answerTooLarge(len(body))
	}
	m, err := Parse(body)
	if err != nil {
		return nil, err
	}
	return m.Answer()
}

// Answer is [DecodeAnswer] for an opened message.
func (m *Message) Answer() (*ToolCallResponse, error) {
	if m.size > MaxAnswerBytes {
		return nil, answerTooLarge(m.size)
	}
	if m.Kind != "" && !answers(m.Kind) {
		return nil, decodeError(fmt.Sprintf("kind is %.80q: expected %q", m.Kind, KindToolCallResponse))
	}
	f := fields{data: m.Data, err: m.timestampErr}
	f.object("context")
	r := &ToolCallResponse{
		TurnID:     f.turnID("turn", "turn_idempotency_key", "context.turn_idempotency_key"),
		Workflow:   strings.Clone(f.name("context.workflow_name", "workflow_name")),
		ToolCallID: strings.Clone(f.callID("tool_call_id", "eventId", "event_id", "request_id", "corr", "ui_tool_id", "call_id")),
		UserID:     strings.Clone(f.id("context.user_id", "user_id")),
	}
	f.require(r.Chat, "chat_id", "context.chat_id or chat_id")
	f.require(r.ToolCallID, "tool_call_id", "tool_call_id, or by an older name: eventId, event_id, request_id, corr, ui_tool_id, call_id")
	value, there := m.value()
	if !there {
		f.require("", "response", "response, or by an older name: payload, response_data, result, text")
	}
	r.Value = value
	if m.deepest > MaxDataDepth && depthExceeds(value, MaxDataDepth) {
		f.fail(decodeError(fmt.Sprintf("the answer is nested more than %d deep: flatten it", MaxDataDepth)))
	}
	if m.nodes > MaxDataNodes {
		f.fail(decodeError(fmt.Sprintf("the event holds more than %d values: store the data elsewhere and send a reference", MaxDataNodes)))
	}
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

// answers reports whether an event of a kind is an answer.
func answers(kind string) bool {
	switch kind {
	case KindToolCallResponse, KindUIToolResponse, KindUIToolDismiss, KindUIToolComplete, KindUserInputSubmit, kindUserInput:
		return true
	}
	return false
}

// AnswerKind reports whether kind, of a body or a token of a subject, is one that
// [Message.Answer] reads, or [KindDeferredResponse].
func AnswerKind(kind string) bool { return answers(kind) || kind == KindDeferredResponse }

// value returns the value of an answer, and whether it has one.
func (m *Message) value() (value any, there bool) {
	for _, name := range []string{"response", "payload", "response_data", "result", "text"} {
		v, ok := m.Data[name]
		if v != nil {
			return v, true
		}
		there = there || ok
	}
	if there {
		return nil, true
	}
	if m.Kind == KindUIToolDismiss {
		return map[string]any{"status": "dismissed"}, true
	}
	if status, ok := m.Data["status"].(string); ok && status != "" {
		return map[string]any{"status": status}, true
	}
	return nil, false
}

// EncodeAnswer writes an answer in its envelope: what a client sends. It refuses what
// [DecodeAnswer] would refuse.
func EncodeAnswer(r *ToolCallResponse, now time.Time) ([]byte, error) {
	w := newWriter(nil, KindToolCallResponse, sizeOf(r.Value))
	w.open("data")
	w.str("kind", KindToolCallResponse)
	w.optional("tool_call_id", r.ToolCallID)
	w.optional("turn", r.Turn)
	w.optional("run_id", r.Run)
	w.value("response", r.Value)
	w.context(r.TurnID, r.Workflow, r.UserID)
	w.close() // context
	w.close()
	body, err := w.finish(now)
	if err != nil {
		return nil, err
	}
	if _, err := DecodeAnswer(body); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return body, nil
}

func answerTooLarge(size int) error {
	return &Error{Code: CodeTooLarge, Op: opDecode, Msg: fmt.Sprintf(
		"the answer has %d bytes: at most %d are allowed; store the data elsewhere and send a reference", size, MaxAnswerBytes)}
}
