package screen

import (
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
)

// Lane is the way in which a client answers a question. There is one for each question and client: clients fail on a
// question that comes in two.
type Lane int

// The lanes.
const (
	// Interrupt: the run ends with an interrupt, and an entry of resume is the answer.
	Interrupt Lane = iota
	// Frontend: the client has a tool of that name; its tool message is the answer.
	Frontend
	// Composer: the question is a text, and the next message of the user is the answer. An open interrupt would lock the
	// composer of CopilotKit.
	Composer
)

// Lane returns the lane of a question for this client.
func (v *View) Lane(c *call) Lane {
	switch {
	case c.question.display == events.DisplayComposer:
		return Composer
	case v.Tools[c.name]:
		return Frontend
	}
	return Interrupt
}

// Question is an open question.
type Question struct {
	ToolCallID string
	Sequence   uint64
	Lane       Lane
	Text       bool // the answer is a text, as of request_input
	User       string
}

// Questions returns the open questions in the order in which they were asked.
func (v *View) Questions(c *Chat) []Question {
	list := make([]Question, 0, len(c.asking))
	for _, e := range c.asking {
		q := e.call
		list = append(list, Question{ToolCallID: q.id, Sequence: q.sequence, Lane: v.Lane(q), Text: q.question.input, User: q.question.user})
	}
	return list
}

// Interrupts returns the open questions that end a run with an interrupt, all of them.
func (v *View) Interrupts(c *Chat) []agui.Interrupt {
	var list []agui.Interrupt
	for _, e := range c.asking {
		if q := e.call; v.Lane(q) == Interrupt {
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
		Metadata: map[string]any{"_ui": json.RawMessage(c.ui)},
	}
	if len(q.schema) > 0 && q.schema[0] == '{' { // a schema may also be true
		i.ResponseSchema = q.schema
	}
	if !q.expiresAt.IsZero() {
		i.ExpiresAt = q.expiresAt.UTC().Format(time.RFC3339Nano)
	}
	return i
}
