package idempotency

import (
	"context"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// AnyToken stands in a filter for every tenant, chat, turn or question.
const AnyToken = "*"

// FindQuestions returns the names of the questions with an id in the call with a tool_call_id,
// by the names of records alone. App, chat and ask are tokens or [AnyToken]. Beyond one chat
// several turns may have one tool_call_id; in a chat there is one of them at most, unless
// somebody has chosen turn keys that look like those of turns with a run id. It fails with
// [ErrTooMany] where the id leaves over 10,000 records to look at: name the chat.
func (s *KV) FindQuestions(ctx context.Context, app, chat, callID, ask string) ([]subjects.Record, error) {
	key := subjects.Key{App: app, Chat: chat, Turn: subjects.TurnToken("", callID), Call: AnyToken}
	found, err := s.Names(ctx, key.Public(kindAsk, ask))
	if err != nil {
		return nil, err
	}
	turn, ok := qualified(callID)
	if !ok {
		return found, nil
	}
	key.Turn = AnyToken
	names, err := s.Names(ctx, key.Public(kindAsk, ask))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
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
