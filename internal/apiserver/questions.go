package apiserver

// The verb questions, also under its former name: a page of open questions, or one question in any state.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/idempotency"
)

// waits is [Server.questions] under its former name.
func (s *Server) waits(ctx context.Context, app string, body []byte) (any, error) {
	found, err := s.questions(ctx, app, body)
	page, ok := found.(*api.Questions)
	if !ok {
		return nil, err
	}
	return &api.Waits{Waits: page.Questions, Next: page.Next}, err
}

// questions reads a page of questions, 16 at most: those that are decided are read as well.
func (s *Server) questions(ctx context.Context, app string, body []byte) (any, error) {
	var q api.QuestionsRequest
	if err := json.Unmarshal(body, &q); err != nil || q.ToolCallID != "" && q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…"?,"tool_call_id":"…"?,"run_id":"…"?,"from":0}, and the chat of a question that is named`, errBadRequest)
	}
	if q.ToolCallID == "" {
		return s.Reader.Questions(ctx, app, q.Chat, q.From)
	}
	found := &api.Questions{Questions: []api.Question{}}
	named, err := s.question(ctx, app, q.Chat, q.Run, q.ToolCallID)
	if named != nil {
		found.Questions = append(found.Questions, *named)
	}
	return found, err
}

// errTooManyTurns refuses to look for a question in a chat that has too many.
var errTooManyTurns = fmt.Errorf("%w: the chat has too many turns to look for the question: name the run_id of its turn, or read the history", errBadRequest)

// question reads one question of a chat in any state; nil if there is none. Run may be "".
func (s *Server) question(ctx context.Context, app, chat, run, id string) (*api.Question, error) {
	q, err := s.Reader.Question(ctx, app, chat, run, id)
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, errTooManyTurns
	}
	return q, err
}
