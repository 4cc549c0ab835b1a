package handlers

import (
	"context"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// The turn that a cancel is about.
//
// A cancel names its turn by the turn key, or by the tool_call_id of any of its events alone. The latter is the id of a
// call, or of a question or surface of it, and leads to the first of these that was claimed: the turn that has asked the
// question, the turn whose key is in the id, a turn under a reused key, a turn with a run id that the cancel does not
// name. The last two have to be searched for.

// namedTurn is a turn that a tool_call_id may mean.
type namedTurn struct {
	id     events.TurnID
	key    subjects.Key
	callID string

	searched bool // its id was found, and not only could be the one
}

// cancelledTurn returns the turn that a cancel is about. Found is false if it is named by an id that belongs to the events
// of a turn, and no such turn was claimed; the turn is the best guess then, and nil without any.
func (h *Handlers) cancelledTurn(ctx context.Context, m *message, e *events.Cancel) (t *turn, found bool, err error) {
	event := &events.StructuredOutputReady{TurnID: e.TurnID, Workflow: e.Workflow, UserID: e.UserID}
	t, found = newTurn(m, event), true
	if e.ToolCallID != "" {
		var named *namedTurn
		named, found, err = h.turnOfCall(ctx, e)
		if err != nil || named == nil {
			return nil, false, err
		}
		e.TurnID, event.TurnID = named.id, named.id
		t.Key, t.Name, t.CallID = named.key, named.key.String(), named.callID
	}
	t.setData(events.Seal(event, 0))
	return t, found, nil
}

// turnOfCall returns the turn that the tool_call_id of a cancel means, and whether that is certain: it was claimed, or the
// cancel may be earlier than its turn.
func (h *Handlers) turnOfCall(ctx context.Context, e *events.Cancel) (named *namedTurn, certain bool, err error) {
	ids := callsInID(e.ToolCallID)
	if len(ids) == 1 && (e.Run != "" || !qualified(ids[0])) {
		if exact := exactTurn(e.TurnID, ids[0]); len(exact) > 0 {
			return &exact[0], true, nil
		}
	}
	candidates := []func() ([]namedTurn, error){func() ([]namedTurn, error) { return h.turnThatAsked(ctx, e) }}
	for _, id := range ids {
		candidates = append(candidates,
			func() ([]namedTurn, error) { return exactTurn(e.TurnID, id), nil },
			func() ([]namedTurn, error) { return h.turnsOfReusedKey(ctx, e, id) },
			func() ([]namedTurn, error) { return h.turnsOfRuns(ctx, e, id) })
	}
	for _, find := range candidates {
		may, err := find()
		if err != nil {
			return nil, false, err
		}
		if claimed, err := h.firstClaimed(ctx, may); claimed != nil || err != nil {
			return claimed, true, err
		}
		if len(may) > 0 && (named == nil || may[0].searched) {
			named = &may[0]
		}
	}
	return named, false, nil
}

// callsInID returns the ids of calls that a tool_call_id may be or hold.
func callsInID(id string) []string {
	if call, _, ok := events.ParseQuestionID(id); ok { // but a turn key may look like it
		return []string{id, call}
	}
	return []string{id}
}

// exactTurn returns the turn whose key is in the id of a call; none if a turn with that key has another id.
func exactTurn(id events.TurnID, callID string) []namedTurn {
	key, turn, ok := query.RefTo(id, callID, "").Exact()
	if !ok {
		return nil
	}
	id.Turn = turn
	return []namedTurn{{id, key, callID, false}}
}

func qualified(callID string) bool {
	_, ok := events.Unqualified(callID)
	return ok
}

// turnThatAsked returns the turn that has asked the question of an id, if the id leads to it without a search.
func (h *Handlers) turnThatAsked(ctx context.Context, e *events.Cancel) ([]namedTurn, error) {
	call, ask, ok := events.ParseQuestionID(e.ToolCallID)
	exact := exactTurn(e.TurnID, call)
	if !ok || len(exact) == 0 {
		return nil, nil
	}
	q, err := h.questionWithID(ctx, exact[0].key, ask, e.ToolCallID)
	switch {
	case errors.Is(err, errNoQuestion), errors.Is(err, query.ErrUnreadable):
		return nil, nil
	case err != nil:
		return nil, err
	}
	exact[0].id.Run, exact[0].id.Turn, exact[0].searched = q.RunID, q.Turn, true
	return exact, nil
}

// turnsOfReusedKey returns the turns under a reused key that have an id.
func (h *Handlers) turnsOfReusedKey(ctx context.Context, e *events.Cancel, callID string) ([]namedTurn, error) {
	keys, err := h.index(e.App).Reused(ctx, query.RefTo(e.TurnID, callID, ""))
	return turnsFound(e, keys, callID, err)
}

// turnsOfRuns returns the turns with run ids that have an id, for a cancel that names no run. Where a chat has too many
// turns to look at, those that have asked the question of the id are left.
func (h *Handlers) turnsOfRuns(ctx context.Context, e *events.Cancel, callID string) ([]namedTurn, error) {
	if e.Run != "" {
		return nil, nil
	}
	_, ask, question := events.ParseQuestionID(e.ToolCallID)
	ref := query.RefTo(e.TurnID, callID, ask)
	keys, err := h.index(e.App).Claimed(ctx, ref)
	if errors.Is(err, idempotency.ErrTooMany) && question {
		if keys, err = h.index(e.App).Asking(ctx, ref); err == nil && len(keys) == 0 {
			err = idempotency.ErrTooMany
		}
	}
	return turnsFound(e, keys, callID, err)
}

// turnsFound returns the turns that a search for an id has found.
func turnsFound(e *events.Cancel, keys []subjects.Key, callID string, err error) (may []namedTurn, _ error) {
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, errTooManyTurns
	}
	id := e.TurnID
	id.Turn, _ = events.Unqualified(callID)
	for _, key := range keys {
		may = append(may, namedTurn{id, key, callID, true})
	}
	return may, err
}

// firstClaimed returns the first of several turns that was claimed, with the ids of its claim; nil if none was.
func (h *Handlers) firstClaimed(ctx context.Context, may []namedTurn) (*namedTurn, error) {
	if len(may) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	keys := make([]subjects.Key, len(may))
	for i := range may {
		keys[i] = may[i].key
	}
	claims, err := h.Journal.Claims(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("find the claimed turn of a tool_call_id: %w", err)
	}
	for i, claim := range claims {
		if claim == nil {
			continue
		}
		if call, _ := query.Call(may[i].key, claim); call != nil {
			may[i].id.Run, may[i].id.Turn = call.RunID, call.Turn
		}
		return &may[i], nil
	}
	return nil, nil //nolint:nilnil // there is none
}
