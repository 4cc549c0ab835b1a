package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

var (
	// errNoQuestion is returned for a question that does not exist.
	errNoQuestion = errors.New("no such question")
	// errNoQuestionID is returned for an argument that cannot be the id of a question.
	errNoQuestionID = errors.New("invalid TOOL_CALL_ID")
)

// question finds a question by its id, and reads its turn.
func (s *server) question(ctx context.Context, where place, toolCallID string, payload bool) (*turnReport, *question, error) {
	call, ask, ok := events.ParseQuestionID(toolCallID)
	if !ok {
		return nil, nil, cli.Usagef("questions: %w %.200q: use <tool_call_id of the call>/<question>, for example turn-7/1", errNoQuestionID, toolCallID)
	}
	names, err := s.names(ctx, where, call, subjects.Token(ask))
	if err != nil {
		return nil, nil, err
	}
	switch len(names) {
	case 0:
		return nil, nil, fmt.Errorf("%w: %.200q%s: turnctl questions ls lists the open ones", errNoQuestion, toolCallID, where.hint())
	case 1:
	default:
		return nil, nil, severalTurns(toolCallID, names)
	}
	l, err := s.turnReport(ctx, names[0].Key, payload)
	if err != nil {
		return nil, nil, err
	}
	q := l.Questions.find(names[0].String(), names[0].ID)
	if q == nil {
		return nil, nil, fmt.Errorf("%w: %.200q: its turn has ended", errNoQuestion, toolCallID)
	}
	return l, q, nil
}

// names lists the questions with an id. Without a chat it searches the timers that end questions, because
// the journal would have to list the names of all turns.
func (s *server) names(ctx context.Context, where place, call, ask string) ([]subjects.Record, error) {
	app, chat := where.tokens()
	ref := &query.Ref{App: app, Chat: chat, Call: call, Ask: ask}
	list, filter := s.reader.Names(app), ref.Questions
	if where.chat == "" {
		list, filter = s.reader.Timers, func(calls subjects.Key) string { return s.space.AskTimers(calls, ask) }
	}
	if ask == idempotency.AnyToken { // also questions of the steps of a program
		inCall := filter
		filter = func(calls subjects.Key) string { return inCall(calls.WithCall(idempotency.AnyToken)) }
	}
	names, err := list.Locate(ctx, ref, filter)
	return names, unprovisioned(err)
}

// severalTurns is the error for an id that several turns use: it names the flags that select one.
func severalTurns(toolCallID string, names []subjects.Record) error {
	const most = 3 // named as examples
	named := names[:min(len(names), most)]
	flags := make([]string, 0, len(named))
	for _, name := range named {
		flags = append(flags, "--app "+argument(shown(name.App))+" --chat "+argument(shown(name.Chat)))
	}
	return cli.Usagef("%d turns asked %.200q: select one with %s", len(names), toolCallID, strings.Join(flags, " or "))
}
