package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deliver"
)

// answerTime bounds the wait for the result of an answer.
const answerTime = timeout - time.Second

// errNotAsked is the message of a published answer whose question does not exist yet.
var errNotAsked = errors.New("the answer is published, and the turn has not asked this question yet: it waits for the question, up to two minutes")

// answer publishes the answer to a question, and returns its result.
func (s *Server) answer(ctx context.Context, app string, body []byte) (any, error) {
	const want = `want {"chat_id":"…","tool_call_id":"…","run_id":"…"?,"user_id":"…"?,"value":…}`
	var r api.AnswerRequest
	if err := json.Unmarshal(body, &r); err != nil || r.Chat == "" || r.ToolCallID == "" || r.Value == nil {
		return nil, fmt.Errorf("%w: %s", errBadRequest, want)
	}
	value, err := events.Decode(r.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: its value: %w", errBadRequest, err)
	}
	q, err := s.question(ctx, app, r.Chat, r.Run, r.ToolCallID)
	if err != nil {
		return nil, err
	}
	if q == nil {
		return deliver.Unknown(r.ToolCallID), nil
	}
	answer := &events.ToolCallResponse{
		TurnID:   events.TurnID{App: q.App, Chat: q.Chat, Run: q.Run, Turn: q.Turn},
		Workflow: q.Workflow, ToolCallID: q.ToolCallID, UserID: r.UserID, Value: value,
	}
	return asyncAnswer(func(ctx context.Context) (any, error) { return s.deliver(ctx, q, answer) }), nil
}

// deliver publishes the answer to a question and waits for its result, as long as a request may.
func (s *Server) deliver(ctx context.Context, q *api.Question, r *events.ToolCallResponse) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	v, err := deliver.Answer(ctx, s.js, s.Space, q.Subject, r)
	if errors.Is(err, deliver.ErrUndecided) {
		if q.State == api.NotAsked {
			err = errNotAsked
		}
		return events.AnswerResult{Status: api.StatusPublished, Code: api.CodePublished, Message: err.Error(), ToolCallID: q.ToolCallID}, nil
	}
	return v, err
}
