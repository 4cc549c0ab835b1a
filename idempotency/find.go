package idempotency

import (
	"context"
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
