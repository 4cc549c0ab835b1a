package display

import (
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
)

// AnswerMode is the way in which a client answers a question. There is one for each question and client: clients fail on a
// question that comes in two.
type AnswerMode int

// The modes.
const (
	// ByInterrupt: the run ends with an interrupt, and an entry of resume is the answer.
	ByInterrupt AnswerMode = iota
	// ByFrontendTool: the client has a tool of that name; its tool message is the answer.
	ByFrontendTool
	// ByComposer: the question is a text, and the next message of the user is the answer. An open interrupt would lock the
	// composer of CopilotKit.
	ByComposer
)

// Mode returns how this client answers a question.
func (v *View) Mode(c *call) AnswerMode {
	switch {
	case c.question.display == events.DisplayComposer:
		return ByComposer
	case v.Tools[c.name]:
		return ByFrontendTool
	}
	return ByInterrupt
}

// mayAnswer reports whether a question is for the user of the client.
func (v *View) mayAnswer(c *call) bool {
	return c.question.user == "" || v.User == "" || c.question.user == v.User
}

// Question is an open question.
type Question struct {
	ToolCallID string
	Sequence   uint64
	Mode       AnswerMode
	Text       bool // the answer is a text, as of request_input
}

// Questions returns the open questions in the order in which they were asked.
func (v *View) Questions(c *Chat) []Question {
	list := make([]Question, 0, len(c.asking))
	for _, e := range c.asking {
		q := e.call
		if !v.mayAnswer(q) {
			continue
		}
		list = append(list, Question{ToolCallID: q.id, Sequence: q.sequence, Mode: v.Mode(q), Text: q.question.input})
	}
	return list
}

// Interrupts returns the open questions that end a run with an interrupt, all of them.
func (v *View) Interrupts(c *Chat) []agui.Interrupt {
	var list []agui.Interrupt
	for _, e := range c.asking {
		if q := e.call; v.Mode(q) == ByInterrupt && v.mayAnswer(q) {
			list = append(list, q.interrupt())
		}
	}
	return list
}

// interrupt is the question as interrupt. Its reason is not tool_call: CopilotKit would then display the answer in place of
// the result.
func (c *call) interrupt() agui.Interrupt {
	q := c.question
	i := agui.Interrupt{
		ID: agui.InterruptID(c.id), Reason: agui.ReasonInputRequired, Message: q.message, ToolCallID: c.id,
		Metadata: map[string]any{"_ui": c.ui},
	}
	if len(q.schema) > 0 && q.schema[0] == '{' { // a schema may also be true
		i.ResponseSchema = q.schema
	}
	if !q.expiresAt.IsZero() {
		i.ExpiresAt = q.expiresAt.UTC().Format(time.RFC3339Nano)
	}
	return i
}
