package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/searches"
	"github.com/oneturn/oneturn/subjects"
)

// What is remembered of questions that were looked for in vain, so that their answers do not have the
// chat searched at each delivery.
const (
	missedQuestions = 10_000
	missedFor       = 30 * time.Second
)

// find returns the question with a tool_call_id. The id leads to its key; where it is a
// qualified one and the run is not told, the turns under a reused key and then the calls of the chat
// that have asked such a question are looked at by their names. Afresh says that the chat is searched
// although that was in vain lately. It fails with a [searches.BusyError] if the chat cannot be searched
// now.
func (h *Handlers) find(ctx context.Context, r *events.ToolCallResponse, afresh bool) (*inquiry, error) {
	callID, ask, ok := events.ParseQuestionID(r.ToolCallID)
	if !ok {
		return nil, fmt.Errorf("%w: tool_call_id is not <call>/<question>", errNoQuestion)
	}
	turn := events.TurnOfCallID(callID, r.Run)
	q, err := h.inquire(ctx, subjects.TurnKey(r.App, r.Chat, r.Run, turn), ask)
	if !errors.Is(err, errNoQuestion) && (err != nil || q.ToolCallID == r.ToolCallID) {
		return q, err
	}
	turn, qualified := events.Unqualified(callID)
	missed := subjects.Token(r.App) + "." + subjects.Token(r.Chat) + "." + subjects.TurnToken(r.Run, r.ToolCallID)
	if !qualified || !afresh && h.missed.Has(missed, h.Now()) {
		return nil, errNoQuestion
	}
	for _, list := range []func() ([]subjects.Key, error){
		func() ([]subjects.Key, error) { return h.reused(ctx, r, callID) },
		func() ([]subjects.Key, error) { return h.askers(ctx, r, ask) },
	} {
		keys, err := list()
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if events.QualifiedCallID(turn, key.Turn) != callID {
				continue
			}
			q, err := h.inquire(ctx, key, ask)
			if !errors.Is(err, errNoQuestion) && (err != nil || q.ToolCallID == r.ToolCallID) {
				return q, err
			}
		}
	}
	h.missed.Add(missed, h.Now())
	return nil, errNoQuestion
}

// reused lists the calls under a reused turn key.
func (h *Handlers) reused(ctx context.Context, r *events.ToolCallResponse, callID string) ([]subjects.Key, error) {
	if h.Reused == nil {
		return nil, nil
	}
	keys, err := h.Reused(ctx, &kvstore.QuestionRef{App: subjects.Token(r.App), Chat: subjects.Token(r.Chat), Run: r.Run, Call: callID})
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, errTooManyTurns
	}
	return keys, err
}

// askers lists the calls of the chat that have asked a question with an id.
func (h *Handlers) askers(ctx context.Context, r *events.ToolCallResponse, ask string) ([]subjects.Key, error) {
	if h.Askers == nil {
		return nil, nil
	}
	keys, err := h.Askers(ctx, subjects.Token(r.App), r.Chat, ask)
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, errTooManyTurns
	}
	return keys, err
}

var errTooManyTurns = fmt.Errorf("%w that can be found: too many turns of the chat have asked one like it: send run_id too", errNoQuestion)

// isBusy reports whether the chat of a question cannot be searched now.
func isBusy(err error) bool {
	_, busy := errors.AsType[*searches.BusyError](err)
	return busy
}
