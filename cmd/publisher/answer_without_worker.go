package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/subjects"
)

// storedQuestion reads a question from the journal, for when no worker runs: the newest one with its id, else
// the call of the turn that may ask it, else nil. It needs the permission to read the journal.
func storedQuestion(ctx context.Context, nc *nats.Conn, prefix string, q *oneturn.Answer) (*events.ToolCall, error) {
	space, err := subjects.New(prefix)
	if err != nil {
		return nil, err
	}
	journal, err := kvstore.Open(nc, space)
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	call, ask, _ := events.ParseQuestionID(q.ToolCallID) // checked with the arguments
	app := q.App
	if app == "" {
		app = events.DefaultApp
	}
	names, err := journal.FindQuestions(ctx, subjects.Token(app), subjects.Token(q.Chat), call, subjects.Token(ask))
	if err != nil {
		return nil, fmt.Errorf("find the question in the journal: %w", err)
	}
	var newest *events.ToolCall
	var seq uint64
	for _, name := range names {
		r, err := journal.Last(ctx, name.Name())
		if err != nil {
			return nil, fmt.Errorf("read the question: %w", err)
		}
		if e, err := events.ReadCall(r.Data); err == nil && e.ToolCallID == q.ToolCallID && r.Seq > seq {
			newest, seq = e, r.Seq
		}
	}
	if newest == nil {
		return runningTurn(ctx, journal, space, app, q.Chat, call)
	}
	return newest, nil
}

// checkAnswer validates an answer against the schema of its question, nil for none. Schemas that cannot be
// checked here are checked by a worker.
func checkAnswer(q *oneturn.Answer, schema any) (v events.AnswerResult, fits bool) {
	if schema == nil {
		return v, true
	}
	text, err := events.AppendJSON(nil, schema)
	if err != nil {
		return v, true
	}
	value, err := model.CompileValue("answer", text)
	if err != nil {
		return v, true
	}
	_, _, violations := value.Conform(q.Value)
	if len(violations) == 0 {
		return v, true
	}
	v = events.NewAnswerResult(events.AnswerInvalid, q.ToolCallID, "The answer does not match the schema of the question.")
	if list, err := json.Marshal(violations); err == nil {
		v.Errors, _ = events.Decode(list) // without the list the result is complete, too
	}
	return v, false
}

// runningTurn is the call of a turn that has no response yet, with the subject of answers to its
// questions, nil if there is none.
func runningTurn(ctx context.Context, journal *kvstore.Store, space subjects.Space, app, chat, callID string) (*events.ToolCall, error) {
	claim, err := journal.OpenCall(ctx, subjects.Token(app), subjects.Token(chat), callID)
	if errors.Is(err, idempotency.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("find the turn in the journal: %w", err)
	}
	e, err := events.ReadCall(claim.Data)
	if err != nil || e.ToolCallID != callID {
		return nil, nil //nolint:nilnil,nilerr // a damaged turn asks nothing
	}
	pool := cmp.Or(claim.Meta.Pool, subjects.DefaultPool)
	e.Answer = &events.AnswerTo{Subject: space.In(pool, events.KindToolCallResponse, e.AppID, e.WorkflowName, e.ChatID)}
	return e, nil
}
