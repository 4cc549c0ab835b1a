package query

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// ChatFacts are what the newest turn or message of a chat states about the chat.
type ChatFacts struct {
	App, Workflow, User string // User is "" if the event names none
}

// ChatFacts returns the facts of a chat, an id; zero if it has no turn or message that can be read.
func (r *Reader) ChatFacts(ctx context.Context, app, chat string) (ChatFacts, error) {
	newest, err := r.last(ctx, app, subjects.ChatRecords(app, chat))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return ChatFacts{}, nil
	case err != nil:
		return ChatFacts{}, err
	}
	name, ok := subjects.ParseKey(newest.Key)
	if !ok {
		return ChatFacts{}, nil
	}
	key := name.OfTurn()
	claims, err := r.store.LastOf(ctx, []string{key.Public(events.RecordCall), key.Public(events.RecordText)})
	if err != nil {
		return ChatFacts{}, err
	}
	if claims[0] != nil {
		if call, err := events.ReadCall(claims[0].Data); err == nil {
			return ChatFacts{App: call.AppID, Workflow: call.WorkflowName, User: call.UserID}, nil
		}
	}
	if claims[1] != nil {
		if text, err := events.ReadText(claims[1].Data); err == nil {
			return ChatFacts{App: text.AppID, Workflow: text.WorkflowName, User: text.UserID}, nil
		}
	}
	return ChatFacts{}, nil
}
