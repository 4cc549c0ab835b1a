package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/plural"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// storedQuestion reads a question from the journal, for when no worker runs; nil if there is none. It needs the
// permission to read the journal.
func storedQuestion(ctx context.Context, nc *nats.Conn, prefix string, q *oneturn.Answer) (*api.Question, error) {
	space, err := subjects.New(prefix)
	if err != nil {
		return nil, err
	}
	app := cmp.Or(q.App, events.DefaultApp)
	stored, err := query.New(nc, space, kvstore.Read(nc, space), nil).Question(ctx, subjects.Token(app), q.Chat, q.Run, q.ToolCallID)
	if err != nil {
		return nil, fmt.Errorf("find the question in the journal: %w", err)
	}
	return stored, nil
}

// checkAnswer validates an answer against the schema of its question, nil for none. Schemas that cannot be
// checked here are checked by a worker.
func checkAnswer(q *oneturn.Answer, schema json.RawMessage) (v events.AnswerResult, fits bool) {
	if schema == nil {
		return v, true
	}
	value, err := model.CompileValue("answer", schema)
	if err != nil {
		return v, true
	}
	_, _, violations := value.Conform(q.Value)
	if len(violations) == 0 {
		return v, true
	}
	v = events.NewAnswerResult(events.AnswerInvalid, q.ToolCallID, fmt.Sprintf("The answer does not match the schema of the question (%s).", plural.Of(len(violations), "violation")))
	if list, err := json.Marshal(violations); err == nil {
		v.Errors, _ = events.Decode(list) // without the list the result is complete, too
	}
	return v, false
}
