package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/display"
)

// What an input asks for is decided once, from the input and the chat as the journal has it: which questions it answers,
// and which messages of the user are new. Both are recognized by ids, so a request that is sent again asks for nothing
// that has happened already.

// plan is what a run has to publish.
type plan struct {
	answers  []answer
	messages []agui.Message // new messages of the user, in order
	reply    *answer        // the answer to the composer's question, published after the message that it is
	replyTo  string         // id of that message
}

// waitingSize is how many bytes the values take that wait until the answers have results: for long, if no worker runs.
func (p *plan) waitingSize() (size int) {
	if len(p.answers) == 0 {
		return 0
	}
	for i := range p.answers {
		size += weight(events.JSONOf(p.answers[i].value))
	}
	for i := range p.messages {
		size += weight(events.JSONOf(p.messages[i].Content))
	}
	return size
}

// answer is the answer to a question.
type answer struct {
	toolCallID string
	value      any
	dismiss    bool // the person has cancelled
}

// maxMessages bounds the new messages of one run: a client has one, or those that it could not send for a while.
const maxMessages = 16

// makePlan makes the plan, or refuses the run. A connect has none. It reads nothing but the chat, which other runs wait for.
func (r *run) makePlan() error {
	if r.connect {
		return nil
	}
	open := r.view.Questions(r.chat)
	answers, uncovered := r.answersTo(open)
	r.plan.answers = answers
	if uncovered { // a tab may not know of the question: show it again; its message was not sent
		return nil
	}
	r.findMessages(open)
	r.doubted = r.newestOfAnotherText()
	if len(r.plan.messages) > maxMessages {
		return refuse(http.StatusBadRequest, "too_many_messages", fmt.Sprintf("the input has %d new messages: send at most %d at a time", len(r.plan.messages), maxMessages))
	}
	if len(r.plan.messages) > 0 && r.plan.reply == nil && r.busy() {
		return inProgress()
	}
	for i := range r.plan.messages {
		m := &r.plan.messages[i]
		sum, err := fingerprintOf(r.userMessage(m))
		if err != nil {
			return refusalOfBody(err)
		}
		r.sums[m.ID], r.unstored[m.ID], r.view.Known[m.ID] = sum, true, true
	}
	return nil
}

// newestOfAnotherText returns the last message of the input if it is of the user and the chat has its id, but displays another text: nil if it
// does not. Older messages are a history, which the journal knows better.
func (r *run) newestOfAnotherText() *agui.Message {
	if len(r.in.Messages) == 0 {
		return nil
	}
	m := &r.in.Messages[len(r.in.Messages)-1]
	if m.Role != agui.RoleUser || r.chat.Stored(m.ID) == 0 || r.chat.Displays(m) {
		return nil
	}
	return m
}

// confirm refuses the run if the journal or another gateway requires it. It runs after take, so other runs can use the chat meanwhile.
func (r *run) confirm(ctx context.Context) error {
	if r.doubted != nil { // a client may have the message as it was sent
		err := r.g.checkStored(ctx, r.userMessage(r.doubted))
		if err != nil && !errors.Is(err, errNotStored) { // or it has a run id
			return err
		}
		r.doubted = nil
	}
	if r.unsure {
		return r.askOthers(ctx)
	}
	r.open.follows.Store(!r.connect)
	return nil
}

// busy reports whether a turn runs, or a message of the user waits for its turn. It notes when the other gateways have to be asked.
func (r *run) busy() (busy bool) {
	message, since := r.chat.Waiting()
	busy, r.unsure = r.g.waitsForTurn(stoppedWait{r.c.target.App, r.c.target.Chat, message}, since)
	return busy || r.chat.Busy()
}

// askOthers refuses the run if a run of another gateway waits for the turn of a message.
func (r *run) askOthers(ctx context.Context) error {
	t := r.c.target
	if open, err := r.g.ask(ctx, stopRequest{App: t.App, Chat: t.Chat, Open: true}); open || err != nil {
		return inProgress()
	}
	if !r.g.runs.begin(t.App, t.Chat, r.open) { // one that has begun meanwhile
		return inProgress()
	}
	return nil
}

func inProgress() error {
	p := refuse(http.StatusConflict, "run_in_progress", "the chat has a run in progress: wait for its end, or stop it, then send the message again")
	p.retry = time.Second
	return p
}

// answersTo returns the answers of the input to open questions, and whether an interrupt is left without one. Answers to other
// questions are ignored: they were decided before.
func (r *run) answersTo(open []display.Question) (answers []answer, uncovered bool) {
	entries := map[string]agui.ResumeEntry{}
	for _, e := range r.in.Resume {
		if id, ok := agui.CallOfInterrupt(e.InterruptID); ok {
			entries[id] = e
		}
	}
	for _, q := range open {
		switch q.Mode {
		case display.ByInterrupt:
			e, ok := entries[q.ToolCallID]
			if !ok {
				uncovered = true
				continue
			}
			answers = append(answers, answerOfResume(q.ToolCallID, e))
		case display.ByFrontendTool:
			if m := r.view.Answers[q.ToolCallID]; m.ID != "" {
				answers = append(answers, answer{toolCallID: q.ToolCallID, value: valueOf(m)})
			}
		case display.ByComposer:
		}
	}
	return answers, uncovered
}

// findMessages finds the new messages of the user. The newest message after the prompt of the composer answers it, also if a
// request before this one has stored the message and got no further.
func (r *run) findMessages(open []display.Question) {
	var newest *agui.Message
	seen := map[string]bool{}
	for i := range r.in.Messages {
		m := &r.in.Messages[i]
		if m.Role != agui.RoleUser {
			continue
		}
		newest = m
		if r.chat.Stored(m.ID) == 0 && !seen[m.ID] {
			seen[m.ID] = true
			r.plan.messages = append(r.plan.messages, *m)
		}
	}
	for _, q := range open {
		if q.Mode != display.ByComposer || newest == nil {
			continue
		}
		if at := r.chat.Stored(newest.ID); at == 0 || at > q.Sequence {
			r.plan.reply = &answer{toolCallID: q.ToolCallID, value: replyOf(q, newest)}
			r.plan.replyTo = newest.ID
		}
		return
	}
}

// answerOfResume is the answer that an entry of resume gives.
func answerOfResume(toolCallID string, e agui.ResumeEntry) answer {
	if e.Status == agui.ResumeCancelled {
		return answer{toolCallID: toolCallID, dismiss: true, value: map[string]any{"status": "cancelled"}}
	}
	return answer{toolCallID: toolCallID, value: jsonValue(e.Payload)}
}

// valueOf is the answer that a tool message gives: its content as JSON, or as a text.
func valueOf(m agui.Message) any {
	if m.Error != "" {
		return map[string]any{"status": "error", "message": m.Error}
	}
	text := m.Content.String()
	if json.Valid([]byte(text)) {
		return jsonValue([]byte(text))
	}
	return text
}

// replyOf is the answer that a message of the user gives.
func replyOf(q display.Question, m *agui.Message) any {
	if q.Text {
		return m.Content.String()
	}
	return valueOf(*m)
}
