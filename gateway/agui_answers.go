package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/agui"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/display"
	"github.com/oneturn/oneturn/internal/feed"
)

// A run publishes messages and answers as any other client does, and watches the journal for the outcome.

// deliveryResult is the result of an answer of this run.
type deliveryResult struct {
	answer
	wait   time.Duration // how long a worker had for it
	result *events.AnswerResult
	err    error
}

// longestVerdict bounds how long a run waits for the verdict on an answer before it asks for it again.
const longestVerdict = 32 * time.Second

// codeInvalidResume is the code that AG-UI clients know for an answer that does not fit. They keep the interrupt.
const codeInvalidResume = "INVALID_RESUME"

// publishPlan publishes what the plan has. Messages come first where one of them is an answer too: a turn that ends in between
// would otherwise leave the message without a turn.
func (r *run) publishPlan(ctx context.Context) {
	for _, a := range r.plan.answers {
		r.send(ctx, a, verdictWait)
	}
	if len(r.plan.answers) == 0 || r.plan.reply != nil {
		r.publishMessages(ctx)
	}
	if r.plan.reply != nil && !r.unstored[r.plan.replyTo] {
		r.send(ctx, *r.plan.reply, verdictWait)
	}
}

// send delivers an answer. Its result comes on the channel results, which need not wait once the journal has a decision.
func (r *run) send(ctx context.Context, a answer, wait time.Duration) {
	r.pending++
	ctx, cancel := context.WithCancel(ctx)
	r.decided[a.toolCallID] = cancel
	given := &events.ToolCallResponse{ToolCallID: a.toolCallID, Value: a.value}
	go func() { // ends within the time of an answer; serve waits for it
		defer cancel()
		result, err := r.g.deliver(ctx, r.c.id, r.c.target, given, wait)
		if err == nil && a.dismiss && result.Status == http.StatusUnprocessableEntity {
			// A tool that insists on an answer gets none: the person has cancelled, so its turn is.
			ctx, cancel := context.WithTimeout(ctx, cancelTime)
			defer cancel()
			_, err = r.g.requestCancel(ctx, r.c.id, r.c.target, cancelRequest{toolCallID: a.toolCallID, reason: "the question was cancelled"})
		}
		r.results <- deliveryResult{a, wait, result, err}
	}()
}

// handleResult handles the result of an answer. What was decided before is not an error: the request was repeated.
func (r *run) handleResult(ctx context.Context, a deliveryResult) error {
	r.pending--
	if a.toolCallID == "" || r.decided[a.toolCallID] != nil { // else the journal has the decision
		if err := r.handleVerdict(ctx, a); err != nil {
			return err
		}
	}
	if r.pending > 0 {
		return nil
	}
	r.c.held.keep(sizeOf(r.view))
	if r.plan.reply == nil && len(r.plan.answers) > 0 {
		r.publishMessages(ctx)
	}
	return nil
}

// handleVerdict handles the result of an answer to a question that is open as far as the run knows.
func (r *run) handleVerdict(ctx context.Context, a deliveryResult) error {
	switch {
	case a.err != nil:
		return a.err
	case a.result.Status == api.StatusPublished:
		// A worker that is slow may refuse the answer yet, which the journal does not show: sent again, it has the same verdict.
		r.send(ctx, a.answer, min(2*a.wait, longestVerdict))
	case a.result.Status == http.StatusUnprocessableEntity && a.dismiss: // its turn was cancelled
	case a.result.Status == http.StatusUnprocessableEntity:
		return refuse(a.result.Status, codeInvalidResume, a.result.Message)
	case a.result.Status == http.StatusForbidden:
		return refuse(a.result.Status, codeForbidden, a.result.Message)
	case a.result.Status == http.StatusTooManyRequests:
		return refuse(a.result.Status, codeRateLimited, a.result.Message)
	case a.result.Status == http.StatusNotFound:
		delete(r.decided, a.toolCallID)
	}
	return nil
}

// publishMessages publishes the new messages of the user, once. Workers store what is published at the same time in any order, so each
// one waits until the journal has the one before.
func (r *run) publishMessages(ctx context.Context) {
	for len(r.plan.messages) > 0 && r.publishing == "" && r.stopAt.IsZero() {
		m := r.plan.messages[0]
		r.plan.messages = r.plan.messages[1:]
		if r.chat.Stored(m.ID) > 0 {
			continue // another request has sent it
		}
		r.publishing = m.ID
		if err := r.g.publishMessage(ctx, r.c.id, r.c.target, r.userMessage(&m)); err != nil && !errors.Is(err, errReplayed) {
			r.plan.messages, r.publishing = nil, ""
			r.pending++
			go func() { r.results <- deliveryResult{err: err} }() // as any other failure of what the run publishes
		}
		return
	}
}

// userMessage is a message as it is published: the text, or its parts.
func (r *run) userMessage(m *agui.Message) *oneturn.UserMessage {
	t := r.c.target
	return &oneturn.UserMessage{
		MessageID: oneturn.MessageID{App: t.App, Chat: t.Chat, Message: m.ID}, Workflow: t.Workflow, UserID: t.User, Content: contentOf(m),
	}
}

// contentOf is the content of a message for the journal.
func contentOf(m *agui.Message) any {
	onlyText := true
	for _, p := range m.Content.Parts {
		onlyText = onlyText && p.Type == agui.PartText
	}
	if onlyText {
		return m.Content.String()
	}
	parts, err := json.Marshal(m.Content)
	if err != nil {
		return m.Content.String()
	}
	return map[string]any{"parts": jsonValue(parts)}
}

// jsonValue decodes JSON that the input had; nil if there is none. The input was read strictly.
func jsonValue(data []byte) any {
	if len(data) == 0 {
		return nil
	}
	v, err := events.Decode(data)
	if err != nil {
		return string(data)
	}
	return v
}

// noteStored notes which messages and answers of the run the journal has. Another request may have sent another message under the
// same id.
func (r *run) noteStored(ctx context.Context, e *feed.Event) error {
	for id := range r.unstored {
		if sum := r.sums[id]; sum != "" && sum != e.Fingerprint && r.chat.Stored(id) == e.Sequence && e.Sequence > 0 {
			return conflicting()
		}
		if r.chat.Stored(id) > 0 {
			delete(r.unstored, id)
			if id == r.publishing {
				r.publishing = ""
				r.publishMessages(ctx)
			}
			if r.plan.reply != nil && id == r.plan.replyTo {
				r.send(ctx, *r.plan.reply, verdictWait)
			}
		}
	}
	for id, cancel := range r.decided {
		if !r.isOpen(id) && e.Sequence > 0 {
			cancel()
			delete(r.decided, id)
		}
	}
	return nil
}

func (r *run) isOpen(toolCallID string) bool {
	for _, q := range r.view.Questions(r.chat) {
		if q.ToolCallID == toolCallID {
			return true
		}
	}
	return false
}

// cancelTime bounds the requests to cancel the turns of a run that was stopped.
const cancelTime = 10 * time.Second

// stop ends the run, and the turns of the chat, for a person who has stopped this run. A connect ends alone: it has started nothing.
func (r *run) stop(ctx context.Context) {
	r.stopAt = time.Now()
	if r.connect {
		return
	}
	if message, _ := r.chat.Waiting(); message != "" {
		r.unstored[message] = true
	}
	for message := range r.unstored {
		r.g.release(stoppedWait{r.c.target.App, r.c.target.Chat, message})
	}
	turns := r.chat.OpenTurns()
	r.cancels.Go(func() { // what the turns do meanwhile is still sent
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime) // the stop counts also if the client leaves
		defer cancel()
		for _, id := range turns {
			_, err := r.g.requestCancel(ctx, r.c.id, r.c.target, cancelRequest{toolCallID: id, reason: "the user has stopped the run"})
			if err != nil {
				r.g.o.Logger.Warn("a turn of a stopped run could not be cancelled", "workflow", events.Clip(r.c.target.Workflow), "err", events.LogText(err))
			}
		}
	})
}

// openIn returns the ids of the open questions that are answered in a mode.
func openIn(questions []display.Question, mode display.AnswerMode) []string {
	var ids []string
	for _, q := range questions {
		if q.Mode == mode {
			ids = append(ids, q.ToolCallID)
		}
	}
	return ids
}
