package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// A turn is also found by the tool_call_id of an event of it: of its call, of a step of a program, or of a question of either.

// byCallID reads the turn that a tool_call_id means and selects the step in it, or returns errNoRecord.
func (s *server) byCallID(ctx context.Context, turn events.TurnID, payload bool) (*turnReport, error) {
	ids := []string{turn.Turn}
	if call, _, ok := events.ParseQuestionID(turn.Turn); ok {
		ids = append(ids, call)
	}
	var found []subjects.Record
	for _, id := range ids {
		names, err := s.reader.Names(subjects.Token(turn.App)).Locate(ctx, query.RefTo(turn, id, ""), query.Claims)
		switch {
		case errors.Is(err, idempotency.ErrTooMany):
			return nil, fmt.Errorf("find the turn of %.200q: the chat has too many turns: set --run to the run id of the turn", turn.Turn)
		case err != nil:
			return nil, unprovisioned(err)
		}
		found = append(found, names...)
	}
	if len(found) == 0 {
		return nil, errNoRecord
	}
	var missing error
	for _, name := range found {
		l, err := s.turnReport(ctx, name.Key, payload)
		if err != nil {
			return nil, err
		}
		if missing = l.selectStep(turn.Turn); missing == nil {
			return l, nil
		}
	}
	return nil, missing
}

// selectStep selects the step that a tool_call_id means, if it means a step. It fails if the turn has no such event.
func (l *turnReport) selectStep(toolCallID string) error {
	ids := []string{toolCallID}
	if call, _, ok := events.ParseQuestionID(toolCallID); ok {
		if !l.Questions.has(toolCallID) && toolCallID != l.ToolCallID {
			return fmt.Errorf("turn %s of chat %s has no question %.200q: turnctl show %s %s lists its questions", id(l.Turn), id(l.Chat), toolCallID, argument(l.Chat), argument(l.Turn))
		}
		ids = append(ids, call)
	}
	for _, id := range ids {
		if id == l.ToolCallID {
			return nil
		}
		for call, step := range events.StepIDs(id) {
			if call == l.ToolCallID && findStep(l.Steps, step) != nil {
				l.Step = step
				return nil
			}
		}
	}
	return fmt.Errorf("turn %s of chat %s has no step or question %.200q: turnctl show %s %s lists its steps", id(l.Turn), id(l.Chat), toolCallID, argument(l.Chat), argument(l.Turn))
}

// splitTenant returns the tenant and the chat of a text that turnctl ls has printed, TENANT/CHAT. A chat of the default tenant may
// have a slash in its id: if it has claims, the whole text is the chat.
func (s *server) splitTenant(ctx context.Context, text string) (app, chat string) {
	app, chat, ok := strings.Cut(text, "/")
	if !ok || app == "" || chat == "" {
		return events.DefaultApp, text
	}
	if claims, err := s.claimsOf(ctx, events.DefaultApp, text); err != nil || len(claims) > 0 {
		return events.DefaultApp, text
	}
	return app, chat
}
