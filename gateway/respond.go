package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/gateway/auth"
	"github.com/oneturn/oneturn/internal/deliver"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/subjects"
)

// Answers to questions: the endpoint for requests, and what it shares with the endpoint for WebSockets. The gateway decides
// nothing: a worker does, and its verdict is the reply. So a second try is always safe.

// Times of an answer.
const (
	questionWait = 3 * time.Second         // for a question that is not asked yet
	questionTime = 4500 * time.Millisecond // for the reads of that, however slow
	verdictWait  = 4 * time.Second
)

// respond is POST /api/tool-call/respond.
func (g *Gateway) respond(c *call) error {
	body, err := g.readBody(c)
	if err != nil {
		return err
	}
	m, err := c.parse(body)
	if err != nil {
		return err
	}
	given, err := readAnswer(m)
	if err != nil {
		return refusalOfBody(err)
	}
	// Whether the body names a tenant decides: a decoded answer has the default.
	target := auth.Target{App: textAt(m.Data, "app_id", "enterprise_id"), User: given.UserID, Workflow: given.Workflow, Chat: given.Chat}
	if c.target, err = c.id.Resolve(target); err != nil {
		return err
	}
	c.searchFor(c.target.User)
	if c.id.Has(auth.RoleService) {
		if err := g.rates.User(c.target.App, c.target.User); err != nil {
			return err
		}
	}
	result, err := g.deliver(c.r.Context(), c.id, c.target, given, verdictWait)
	if err != nil {
		return err
	}
	if result.Status == http.StatusTooManyRequests {
		c.w.Header().Set("Retry-After", "1")
	}
	c.code = string(result.Code)
	writeJSON(c.w, result.Status, result)
	return nil
}

// readAnswer reads the answer of a message, whatever its kind is.
func readAnswer(m *events.Message) (*events.ToolCallResponse, error) {
	if !events.AnswerKind(m.Kind) {
		m.Kind = events.KindToolCallResponse // the endpoint decides what the body is
	}
	return m.Answer()
}

// textAt returns the first text that data, or its context, has under one of the names.
func textAt(data map[string]any, names ...string) string {
	inner, _ := data["context"].(map[string]any)
	for _, name := range names {
		for _, at := range []map[string]any{inner, data} {
			if text, _ := at[name].(string); text != "" {
				return text
			}
		}
	}
	return ""
}

// deliver publishes the answer of a user to a question of a chat, and returns the verdict. Without one in time, that is [api.CodePublished].
func (g *Gateway) deliver(ctx context.Context, id *auth.Identity, t auth.Target, given *events.ToolCallResponse, wait time.Duration) (*events.AnswerResult, error) {
	if _, err := g.mayUseChat(ctx, id, t); err != nil {
		return nil, err
	}
	q, err := g.askedQuestion(ctx, t, given.Run, given.ToolCallID)
	if err != nil {
		return nil, err
	}
	if q == nil {
		unknown := events.NewAnswerResult(events.AnswerUnknown, given.ToolCallID,
			fmt.Sprintf("there is no such question in this chat of tenant %.80q: name another tenant as app_id; if its turn was published just now, send the answer again", t.App))
		return &unknown, nil
	}
	t.Workflow = q.Workflow
	if _, err := id.Resolve(t); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	result, err := deliver.Answer(ctx, g.js, g.space, q.Subject, &events.ToolCallResponse{
		TurnID:   events.TurnID{App: q.App, Chat: q.Chat, Run: q.Run, Turn: q.Turn},
		Workflow: q.Workflow, ToolCallID: q.ToolCallID, UserID: t.User, Value: given.Value,
	})
	switch {
	case errors.Is(err, deliver.ErrUndecided):
		return &events.AnswerResult{
			Status: api.StatusPublished, Code: api.CodePublished, ToolCallID: q.ToolCallID,
			Message: "the answer is stored, and no worker has decided on it yet: send it again, or watch chat.tool_call_ack",
		}, nil
	case errors.Is(err, events.ErrBadArgs), errors.Is(err, events.ErrTooLarge):
		return nil, refusalOfBody(err)
	}
	return result, err
}

// askedQuestion finds a question that was asked, in whatever state; nil if there is none, also after a short wait: its
// turn may have been published just now.
func (g *Gateway) askedQuestion(ctx context.Context, t auth.Target, run, id string) (*api.Question, error) {
	const first = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	end := time.Now().Add(questionWait)
	for wait := first; ; wait *= 2 {
		q, err := g.journal(ctx).reader.Question(ctx, subjects.Token(t.App), t.Chat, run, id)
		if errors.Is(err, context.DeadlineExceeded) && wait > first {
			return nil, nil //nolint:nilnil // it was not there when it was read before
		}
		if err != nil || q != nil && q.State != api.NotAsked {
			return q, err
		}
		left := time.Until(end)
		if left <= 0 {
			return nil, nil //nolint:nilnil // there is none
		}
		if err := pause.For(ctx, min(wait, left)); err != nil {
			return nil, err
		}
	}
}
