package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
)

// turn reads a page of a turn, or of its steps.
func (s *Server) turn(ctx context.Context, app string, body []byte) (any, error) {
	var q api.TurnRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" || (q.Turn == "") == (q.Message == "") || q.Steps && q.Turn == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","turn":"…","run_id":"…"?,"steps":true?,"from":0}, or message_id in place of turn`, errBadRequest)
	}
	read := s.Reader.TurnEvents
	if q.Steps {
		read = s.Reader.Steps
	}
	page, err := read(ctx, app, &q)
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, fmt.Errorf("%w: the turn key was used more than %d times with different data: name the fingerprint of the data, or read the history", errBadRequest, query.MaxReused)
	}
	return page, err
}

// history reads a page of a chat.
func (s *Server) history(ctx context.Context, app string, body []byte) (any, error) {
	var q api.HistoryRequest
	if err := json.Unmarshal(body, &q); err != nil || q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…","from":0}`, errBadRequest)
	}
	return s.Reader.ChatEvents(ctx, app, q.Chat, q.From)
}
