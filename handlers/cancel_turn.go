package handlers

import (
	"context"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// wished is the turn that a cancel is about. It may be named by the tool_call_id of any of its events alone. That of a
// question leads to the turn that has asked it. Any other is the id of a call: of the turn whose key it is, of a turn
// with a run id, or of a turn whose key was used before. Which of them it is depends on which was claimed.
func (h *Handlers) wished(ctx context.Context, m *Message, e *events.Cancel) (*turn, error) {
	event := &events.StructuredOutputReady{TurnID: e.TurnID, Workflow: e.Workflow, UserID: e.UserID}
	t := newTurn(m, event)
	if e.ToolCallID != "" {
		named, err := h.namedByCall(ctx, e)
		if err != nil {
			return nil, err
		}
		e.TurnID, event.TurnID = named.id, named.id
		t.key, t.name, t.callID = named.key, named.key.String(), named.callID
	}
	t.seal(events.Seal(event, 0))
	return t, nil
}

// namedTurn is a turn that the id of a call may mean.
type namedTurn struct {
	id     events.TurnID
	key    subjects.Key
	callID string
}

// namedByCall returns the turn that the tool_call_id of a cancel means. If none of those that it can mean was claimed,
// it is the first of them: the cancel may be earlier than its turn.
func (h *Handlers) namedByCall(ctx context.Context, e *events.Cancel) (*namedTurn, error) {
	ids := []string{e.ToolCallID}
	if call, _, ok := events.ParseQuestionID(e.ToolCallID); ok { // but a turn key may look like it
		q, err := h.find(ctx, &events.ToolCallResponse{TurnID: e.TurnID, ToolCallID: e.ToolCallID}, true)
		switch {
		case err == nil:
			id := e.TurnID
			id.Run, id.Turn = q.RunID, q.Turn
			return &namedTurn{id, q.key, call}, nil
		case errors.Is(err, errTooManyTurns), !errors.Is(err, errNoQuestion) && !errors.Is(err, errUnreadable):
			return nil, err
		}
		ids = append(ids, call)
	}
	var may []namedTurn
	for _, callID := range ids {
		may = append(may, exactTurn(e.TurnID, callID)...)
	}
	call := ids[len(ids)-1]
	turn, qualified := events.Unqualified(call)
	switch {
	case len(may) == 1 && (e.Run != "" || !qualified):
		return &may[0], nil
	case qualified:
		keys, err := h.reused(ctx, &events.ToolCallResponse{TurnID: e.TurnID}, call)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			id := e.TurnID
			id.Turn = turn
			may = append(may, namedTurn{id, key, call})
		}
	}
	return h.claimedOf(ctx, e, may)
}

// exactTurn returns the turn whose key is in the id of its call; none if a turn with that key has another id.
func exactTurn(id events.TurnID, callID string) []namedTurn {
	id.Turn = events.TurnOfCallID(callID, id.Run)
	key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
	if events.CallID(id, key.Turn) != callID {
		return nil
	}
	return []namedTurn{{id, key, callID}}
}

// claimedOf returns the first of several turns that was claimed, else the first one, else the turn that has the
// tool_call_id for its key.
func (h *Handlers) claimedOf(ctx context.Context, e *events.Cancel, may []namedTurn) (*namedTurn, error) {
	if len(may) == 0 {
		id := e.TurnID
		id.Turn = e.ToolCallID
		key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
		return &namedTurn{id, key, events.CallID(id, key.Turn)}, nil
	}
	keys := make([]subjects.Key, len(may))
	for i := range may {
		keys[i] = may[i].key
	}
	claims, err := h.Journal.Claims(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("look which turn of the id was claimed: %w", err)
	}
	for i, claim := range claims {
		if claim != nil {
			return &may[i], nil
		}
	}
	return &may[0], nil
}
