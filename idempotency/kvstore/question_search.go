package kvstore

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// Lister lists the names of the records that match a filter, in the order of the names, as
// [Store.Names] does. It fails with [idempotency.ErrTooMany] beyond 10,000 of them.
type Lister func(ctx context.Context, filter string) ([]subjects.Record, error)

// QuestionRef is how a question, or the call that may ask it, is named from outside.
type QuestionRef struct {
	App, Chat string // tokens
	Run       string // run id of the turn, "" if it is not known
	Call      string // tool_call_id of the call
	Ask       string // token of the id in the call, or [AnyToken]
}

// FindQuestions is [Lister.FindQuestions] without a budget, for a turn whose run is not known.
func (s *Store) FindQuestions(ctx context.Context, app, chat, callID, ask string) ([]subjects.Record, error) {
	return Lister(s.Names).FindQuestions(ctx, QuestionRef{App: app, Chat: chat, Call: callID, Ask: ask})
}

// FindQuestions returns the names of the questions that are meant, by the names of records alone.
// There is one at most, unless turn keys were chosen that look like turn keys with a run
// id. Where the id leads to the turn, with its run if it has one, nothing else is looked at; otherwise
// the whole chat is. It fails with [idempotency.ErrTooMany] where that leaves over 10,000 records to check.
func (list Lister) FindQuestions(ctx context.Context, q QuestionRef) ([]subjects.Record, error) {
	return list.find(ctx, &q, func(calls subjects.Key) string { return calls.Public(events.RecordAsk, q.Ask) })
}

// find returns the records of the call that is meant; filter makes the one for a call or for all.
func (list Lister) find(ctx context.Context, q *QuestionRef, filter func(calls subjects.Key) string) ([]subjects.Record, error) {
	calls := subjects.Key{App: q.App, Chat: q.Chat, Turn: idempotency.AnyToken, Call: idempotency.AnyToken}
	names := func(calls subjects.Key) ([]subjects.Record, error) { return list(ctx, filter(calls)) }
	exact := calls
	id := events.TurnID{Run: q.Run, Turn: events.TurnOfCallID(q.Call, q.Run)}
	exact.Turn = subjects.TurnToken(id.Run, id.Turn)
	if events.CallID(id, exact.Turn) == q.Call { // the id of a reused key names the same turn key and run
		found, err := names(exact)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	turn, ok := events.Unqualified(q.Call)
	if !ok {
		return nil, nil
	}
	reused, err := list.Reused(ctx, q)
	for _, key := range reused {
		exact.Turn = key.Turn
		if found, err := names(exact); err != nil || len(found) > 0 {
			return found, err
		}
	}
	if err != nil || q.Run != "" {
		return nil, err
	}
	return qualified(calls, turn, q.Call, names)
}

// Reused returns the calls under used turn keys that have the id of the call that is meant, none for an
// id that is not qualified.
func (list Lister) Reused(ctx context.Context, q *QuestionRef) ([]subjects.Key, error) {
	turn, ok := events.Unqualified(q.Call)
	if !ok {
		return nil, nil
	}
	key := subjects.Key{App: q.App, Chat: q.Chat, Turn: subjects.TurnToken(q.Run, turn), Call: subjects.SingleCall}
	notes, err := list(ctx, key.ReuseNotes())
	if err != nil {
		return nil, err
	}
	var found []subjects.Key
	for _, note := range notes {
		if key := key.Reuse(q.Run, turn, note.ID); events.QualifiedCallID(turn, key.Turn) == q.Call {
			found = append(found, key)
		}
	}
	return found, nil
}

// qualified filters the names of many turns by call id.
func qualified(calls subjects.Key, turn, callID string, names func(calls subjects.Key) ([]subjects.Record, error)) ([]subjects.Record, error) {
	all, err := names(calls)
	if err != nil {
		return nil, err
	}
	var found []subjects.Record
	for _, name := range all {
		if events.QualifiedCallID(turn, name.Turn) == callID {
			found = append(found, name)
		}
	}
	return found, nil
}

// FindQuestions is [Store.FindQuestions] for names that are listed elsewhere, also of several chats:
// calls is a filter whose turns are [idempotency.AnyToken], and names lists the questions that match such a
// filter.
func FindQuestions(calls subjects.Key, callID string, names func(calls subjects.Key) ([]subjects.Record, error)) ([]subjects.Record, error) {
	exact := calls
	exact.Turn = subjects.TurnToken("", callID)
	found, err := names(exact)
	if err != nil {
		return nil, err
	}
	turn, ok := events.Unqualified(callID)
	if !ok {
		return found, nil
	}
	more, err := qualified(calls, turn, callID, names)
	return append(found, more...), err
}

// CallsAsking returns the calls of a chat that have asked a question with this id: an id without its turn,
// such as "1", is one of many. The tenant is a token, chat and question are ids. It fails with
// [idempotency.ErrTooMany] beyond 10,000.
func (list Lister) CallsAsking(ctx context.Context, appToken, chat, ask string) ([]subjects.Key, error) {
	names, err := list(ctx, subjects.QuestionInChat(appToken, chat, ask))
	keys := make([]subjects.Key, 0, len(names))
	for _, name := range names {
		keys = append(keys, name.Key)
	}
	return keys, err
}

// Calls returns the calls of a chat that were claimed. The tenant is a token, the chat an id. It fails with [idempotency.ErrTooMany]
// beyond 10,000.
func (list Lister) Calls(ctx context.Context, appToken, chat string) ([]subjects.Key, error) {
	all := subjects.Key{App: appToken, Chat: subjects.Token(chat), Turn: idempotency.AnyToken, Call: idempotency.AnyToken}
	names, err := list(ctx, all.Public(events.KindToolCall))
	keys := make([]subjects.Key, 0, len(names))
	for _, name := range names {
		keys = append(keys, name.Key)
	}
	return keys, err
}

// OpenCall is [Store.FindOpenCall] without a budget, for a turn whose run is not known.
func (s *Store) OpenCall(ctx context.Context, app, chat, callID string) (idempotency.Record, error) {
	return s.FindOpenCall(ctx, s.Names, QuestionRef{App: app, Chat: chat, Call: callID})
}

// FindOpenCall returns the claim of the call that is meant, if it has no response yet, or
// [idempotency.ErrNotFound]: a worker has entered its tool, or will. It fails as [Lister.FindQuestions] does.
func (s *Store) FindOpenCall(ctx context.Context, list Lister, q QuestionRef) (idempotency.Record, error) {
	names, err := list.find(ctx, &q, func(calls subjects.Key) string { return calls.Public(events.KindToolCall) })
	if err != nil {
		return idempotency.Record{}, err
	}
	const most = 16 // there is one, unless turn keys were chosen to look alike
	for _, name := range names[:min(len(names), most)] {
		claim, err := s.Last(ctx, name.Name())
		if errors.Is(err, idempotency.ErrNotFound) || err == nil && (claim.Err != nil || claim.Meta.Outcome != "") {
			continue // it has just expired, or ends without its tool
		}
		if err != nil {
			return idempotency.Record{}, err
		}
		switch end, err := s.Last(ctx, name.Public(events.KindToolResponse)); {
		case errors.Is(err, idempotency.ErrNotFound), err == nil && end.Seq < claim.Seq: // of an earlier generation of the key
			return claim, nil
		case err != nil:
			return idempotency.Record{}, err
		}
	}
	return idempotency.Record{}, idempotency.ErrNotFound
}
