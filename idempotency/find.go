package idempotency

import (
	"context"
	"errors"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// AnyToken stands in a filter for every tenant, chat, turn or question.
const AnyToken = "*"

// FindQuestions returns the names of the questions of a chat with an id in the call with a
// tool_call_id, by the names of records alone. App, chat and ask are tokens; ask may be
// [AnyToken]. There is one at most, unless somebody has chosen turn keys that look like those of
// turns with a run id. It fails with [ErrTooMany] where the id leaves over 10,000 records to
// look at.
func (s *KV) FindQuestions(ctx context.Context, app, chat, callID, ask string) ([]subjects.Record, error) {
	calls := subjects.Key{App: app, Chat: chat, Turn: AnyToken, Call: AnyToken}
	return FindQuestions(calls, callID, func(calls subjects.Key) ([]subjects.Record, error) {
		return s.Names(ctx, calls.Public(kindAsk, ask))
	})
}

// FindQuestions is [KV.FindQuestions] for names that are listed elsewhere, also of several chats:
// calls is a filter whose turns are [AnyToken], and names lists the questions that match such a
// filter.
func FindQuestions(calls subjects.Key, callID string, names func(calls subjects.Key) ([]subjects.Record, error)) ([]subjects.Record, error) {
	exact := calls
	exact.Turn = subjects.TurnToken("", callID)
	found, err := names(exact)
	if err != nil {
		return nil, err
	}
	turn, ok := qualified(callID)
	if !ok {
		return found, nil
	}
	all, err := names(calls)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if events.QualifiedCallID(turn, name.Turn) == callID {
			found = append(found, name)
		}
	}
	return found, nil
}

// OpenCall returns the claim of the call of a chat that has a tool_call_id and no response yet, or
// [ErrNotFound]: a worker has entered its tool, or will. App and chat are tokens. It fails as
// [KV.FindQuestions] does.
func (s *KV) OpenCall(ctx context.Context, app, chat, callID string) (Record, error) {
	calls := subjects.Key{App: app, Chat: chat, Turn: AnyToken, Call: AnyToken}
	names, err := FindQuestions(calls, callID, func(calls subjects.Key) ([]subjects.Record, error) {
		return s.Names(ctx, calls.Public(kindCall))
	})
	if err != nil {
		return Record{}, err
	}
	const most = 16 // there is one, unless turn keys were chosen to look alike
	for _, name := range names[:min(len(names), most)] {
		claim, err := s.Last(ctx, name.Name())
		if errors.Is(err, ErrNotFound) || err == nil && (claim.Err != nil || claim.Meta.Verdict != "") {
			continue // it has just expired, or ends without its tool
		}
		if err != nil {
			return Record{}, err
		}
		switch end, err := s.Last(ctx, name.Public(kindResponse)); {
		case errors.Is(err, ErrNotFound), err == nil && end.Seq < claim.Seq: // of a former life of the key
			return claim, nil
		case err != nil:
			return Record{}, err
		}
	}
	return Record{}, ErrNotFound
}

// qualified returns the turn key of a call id that may be that of a turn with a run id or a
// reused key: it ends in "@" and 8 hex digits.
func qualified(callID string) (turn string, ok bool) {
	const digits = 8
	at := len(callID) - digits - 1
	if at <= 0 || callID[at] != '@' || strings.Trim(callID[at+1:], "0123456789abcdef") != "" {
		return "", false
	}
	return callID[:at], true
}
