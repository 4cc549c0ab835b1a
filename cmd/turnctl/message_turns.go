package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// The turns that a message has made: the one of its text, and one for each correction that is stored.

// messageTurn is a turn that a message has made.
type messageTurn struct {
	Turn       string          `json:"turn"`
	Corrects   string          `json:"correction_of,omitempty"` // turn key of the turn whose output it corrects
	State      query.TurnState `json:"state"`
	Outcome    string          `json:"outcome,omitempty"` // of an ended one: ok, or the code, or error
	Tool       string          `json:"tool,omitempty"`
	TotalMS    *float64        `json:"total_ms"`              // claim to end, null while open
	OtherCause bool            `json:"other_cause,omitempty"` // its claim names another message, or none: it was published, too
	Key        string          `json:"key"`
}

// readTurnsOf reads the turns that a message has made.
func (s *server) readTurnsOf(ctx context.Context, l *messageReport) error {
	if l.turn == "" {
		return nil
	}
	keys := []string{l.turn}
	for _, c := range l.Calls {
		if digits, ok := strings.CutPrefix(c.Call, "c"); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				keys = append(keys, l.event.CorrectedTurn(n))
			}
		}
	}
	for _, turn := range keys {
		key := subjects.TurnKey(l.App, l.Chat, l.Run, turn)
		t, err := idempotency.LoadEnds(ctx, s.journal, key)
		if err == nil && t.Claim != nil && t.Response == nil { // whether it is parked is in other records
			t, err = idempotency.Load(ctx, s.journal, key)
		}
		switch {
		case err != nil && !errors.Is(err, idempotency.ErrNotFound):
			return err
		case err != nil || t.Claim == nil:
			continue
		}
		l.Turns = append(l.Turns, newMessageTurn(t, turn, l.token))
	}
	return nil
}

func newMessageTurn(t *idempotency.Turn, turn, message string) messageTurn {
	m := messageTurn{Turn: turn, State: query.StateOfTurn(t), Key: t.Key.String(), OtherCause: t.Claim.Meta.Message != message}
	if call, err := events.ReadCall(t.Claim.Data); err == nil {
		m.Tool, m.Corrects = call.ToolName, call.CorrectionOf
	}
	if t.Response == nil {
		return m
	}
	took := milliseconds(t.Response.Time.Sub(t.Claim.Time))
	m.TotalMS = &took
	if e, err := events.ReadResponse(t.Response.Data); err == nil {
		m.Outcome = newAnswerFacts(e, t.Claim, t.Response, false).outcome()
	} else {
		m.Outcome = string(events.CodeStateCorrupt)
	}
	return m
}
