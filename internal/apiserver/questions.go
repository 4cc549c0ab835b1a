package apiserver

// The verb questions: the questions of a chat are found by their records, the questions of a tenant by the timers that
// end them, and one question by the turn that its id names. All are read by package query.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/subjects"
)

// waits is [Server.questions] under its former name.
func (s *Server) waits(ctx context.Context, app string, body []byte) (any, error) {
	found, err := s.questions(ctx, app, body)
	page, ok := found.(*api.Questions)
	if !ok {
		return nil, err
	}
	return &api.Waits{Waits: page.Questions, Next: page.Next}, err
}

// questions reads a page of questions, 16 at most: those that are decided are read as well.
func (s *Server) questions(ctx context.Context, app string, body []byte) (any, error) {
	var q api.QuestionsRequest
	if err := json.Unmarshal(body, &q); err != nil || q.ToolCallID != "" && q.Chat == "" {
		return nil, fmt.Errorf(`%w: want {"chat_id":"…"?,"tool_call_id":"…"?,"run_id":"…"?,"from":0}, and the chat of a question that is named`, errBadRequest)
	}
	found := &api.Questions{Questions: []api.Question{}}
	if q.ToolCallID != "" {
		named, err := s.question(ctx, app, q.Chat, q.Run, q.ToolCallID)
		if named != nil {
			found.Questions = append(found.Questions, *named)
		}
		return found, err
	}
	page := &questionPage{Questions: found, server: s, whole: q.Chat != ""}
	var err error
	if q.Chat == "" {
		err = s.questionsOfTenant(ctx, app, q.From, page)
	} else {
		err = s.each(ctx, app, subjects.QuestionsOfChat(app, q.Chat), q.From, func(r *idempotency.Record, more bool) (bool, error) {
			return page.add(ctx, r, r.Seq, more)
		})
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// questionsOfTenant finds questions among the timers that end them: every question has one until
// its time is over. To look for records of one kind in all chats, the server would go through the
// names of all turns, a quarter of a second for 200,000, and store nothing meanwhile.
func (s *Server) questionsOfTenant(ctx context.Context, app string, from uint64, page *questionPage) error {
	filter := s.space.AskTimersOfTenant(app)
	places, err := s.timers.order.FromWithin(ctx, s.reader.Within(ctx, app), filter, from)
	if errors.Is(err, idempotency.ErrTooMany) {
		return s.searchTimers(ctx, app, filter, from, page)
	}
	if err != nil {
		return err
	}
	for _, place := range places {
		if on, err := s.questionOfTimer(ctx, place.Subject, place.Seq, page); err != nil || !on {
			return err
		}
	}
	return nil
}

// searchTimers is for tenants that have too many questions for the index. The server goes through
// the timers of all tenants, hence the budget. The last one is looked up first: the search for one
// more would go through them to their end.
func (s *Server) searchTimers(ctx context.Context, app, filter string, from uint64, page *questionPage) error {
	search := s.reader.Within(ctx, app)
	var last uint64
	err := search(func() (err error) {
		last, err = s.timers.Sequence(ctx, filter)
		return err
	})
	for on := true; on && err == nil && from <= last; from++ {
		var subject string
		err = search(func() (err error) {
			subject, from, err = s.timers.next(ctx, filter, from)
			return err
		})
		if err == nil {
			on, err = s.questionOfTimer(ctx, subject, from, page)
		}
	}
	if errors.Is(err, idempotency.ErrNotFound) {
		return nil // it has just ended
	}
	return err
}

// questionOfTimer reads the question of a timer that was found at a sequence.
func (s *Server) questionOfTimer(ctx context.Context, timer string, at uint64, page *questionPage) (on bool, err error) {
	key, ask, ok := s.space.ParseAskTimer(timer)
	if !ok {
		return true, nil
	}
	r, err := s.reader.Store.Last(ctx, key.Public(events.RecordAsk, ask))
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return page.full(at, true), nil
	case err != nil:
		return false, err
	}
	return page.add(ctx, &r, at, true)
}

// questionPage is a page of questions that is being filled.
type questionPage struct {
	*api.Questions

	server      *Server
	whole       bool // with schema and payload
	reads, size int
}

// add takes a question that is open, and reports whether the page takes another one. At is where
// the question was found, and more whether there may be others after it.
func (p *questionPage) add(ctx context.Context, r *idempotency.Record, at uint64, more bool) (bool, error) {
	q := query.ReadQuestion(r, p.whole)
	if q == nil {
		return p.full(at, more), nil
	}
	var err error
	if q.State, err = query.State(ctx, p.server.reader.Store, r); err != nil {
		return false, err
	}
	if q.State == api.Open {
		if p.size += len(encode(q)); p.size > min(pageBytes, p.server.most) && len(p.Questions.Questions) > 0 {
			p.Next = at
			return false, nil
		}
		p.Questions.Questions = append(p.Questions.Questions, *q)
	}
	return p.full(at, more), nil
}

// full counts a record that was read, and reports whether the page takes another one.
func (p *questionPage) full(at uint64, more bool) bool {
	if p.reads++; more && p.reads == pageRecords {
		p.Next = at + 1
		return false
	}
	return true
}

// errTooManyTurns refuses to look for a question in a chat that has too many.
var errTooManyTurns = fmt.Errorf("%w: the chat has too many turns to look for the question: name the run_id of its turn, or read the history", errBadRequest)

// question reads one question of a chat in any state; nil if there is none. Run may be "".
func (s *Server) question(ctx context.Context, app, chat, run, id string) (*api.Question, error) {
	call, ask, ok := events.ParseQuestionID(id)
	if !ok {
		return nil, nil //nolint:nilnil // no question has such an id
	}
	ref := kvstore.QuestionRef{App: app, Chat: subjects.Token(chat), Run: run, Call: call, Ask: subjects.Token(ask)}
	names, err := s.reader.Names(app).FindQuestions(ctx, ref)
	if errors.Is(err, idempotency.ErrTooMany) {
		return nil, errTooManyTurns
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names[:min(len(names), pageRecords)] {
		r, err := s.reader.Store.Last(ctx, name.Name())
		if errors.Is(err, idempotency.ErrNotFound) {
			continue // it has just expired
		}
		if err != nil {
			return nil, err
		}
		q := query.ReadQuestion(&r, true)
		if q == nil || q.ToolCallID != id {
			continue
		}
		q.State, err = query.State(ctx, s.reader.Store, &r)
		return q, err
	}
	return s.notAskedYet(ctx, ref, id)
}

// notAskedYet is a question that a running call may still ask, nil if there is no such call.
func (s *Server) notAskedYet(ctx context.Context, ref kvstore.QuestionRef, id string) (*api.Question, error) {
	r, err := s.reader.Store.FindOpenCall(ctx, s.reader.Names(ref.App), ref)
	switch {
	case errors.Is(err, idempotency.ErrNotFound):
		return nil, nil //nolint:nilnil // there is none
	case errors.Is(err, idempotency.ErrTooMany):
		return nil, errTooManyTurns
	case err != nil:
		return nil, err
	}
	e, err := events.ReadCall(r.Data)
	if err != nil || e.ToolCallID != ref.Call {
		return nil, nil //nolint:nilnil,nilerr // a damaged one asks nothing
	}
	return &api.Question{
		State: api.NotAsked, ToolCallID: id, App: e.AppID, Chat: e.ChatID, Run: e.RunID, Turn: e.Turn, Workflow: e.WorkflowName, Agent: e.Agent, User: e.UserID,
		Subject: s.space.In(cmp.Or(r.Meta.Pool, subjects.DefaultPool), events.KindToolCallResponse, e.AppID, e.WorkflowName, e.ChatID),
	}, nil
}
