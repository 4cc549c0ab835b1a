package query

import (
	"bytes"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// ErrUnreadable is the error of a question whose record cannot be decoded, or belongs to another chat.
var ErrUnreadable = errors.New("the question cannot be read")

// Call decodes the event of a claim, and reports whether its turn key had been used before.
// It returns nil when the event cannot be read or its ids do not lead to the key.
func Call(key subjects.Key, claim *idempotency.Record) (call *events.ToolCall, reused bool) {
	call, err := events.ReadCall(claim.Data)
	if err != nil {
		return nil, false
	}
	plain := subjects.TurnKey(call.AppID, call.ChatID, call.RunID, call.Turn)
	if key == plain {
		return call, false
	}
	if key != plain.Reuse(call.RunID, call.Turn, claim.Meta.Fingerprint) {
		return nil, false
	}
	return call, true
}

// Question decodes the event of a question of a call, or returns [ErrUnreadable].
func Question(key subjects.Key, event []byte) (*events.ToolCall, error) {
	q, err := events.ReadCall(event)
	if err != nil || q.Answer == nil {
		return nil, ErrUnreadable
	}
	if subjects.Token(q.AppID) != key.App || subjects.Token(q.ChatID) != key.Chat {
		return nil, ErrUnreadable
	}
	return q, nil
}

// Response decodes a stored response, nil if that is not possible.
func Response(end *idempotency.Record) *events.ToolResponse {
	r, err := events.ReadResponse(end.Data)
	if err != nil {
		return nil
	}
	return r
}

// NamesContext reports whether a response names context variables that its tool has changed.
func NamesContext(end *idempotency.Record) bool {
	if !bytes.Contains(end.Data, []byte("context_keys")) {
		return false // most do not: they need not be decoded
	}
	r := Response(end)
	return r != nil && len(r.ContextKeys) > 0
}

// IDs returns the ids of a key as far as they are known: the given ones if they lead to the key, else what its tokens
// hold.
func IDs(key subjects.Key, given events.TurnID) events.TurnID {
	id := func(token, given string) string {
		if subjects.Token(given) == token {
			return given
		}
		if text, _, err := subjects.Untoken(token); err == nil {
			return text
		}
		return token
	}
	ids := events.TurnID{App: id(key.App, given.App), Chat: id(key.Chat, given.Chat), Run: given.Run, Turn: given.Turn}
	if subjects.TurnToken(given.Run, given.Turn) != key.Turn {
		var ok bool
		if ids.Run, ids.Turn, ok = subjects.ParseTurnToken(key.Turn); !ok {
			ids.Turn = key.Turn
		}
	}
	return ids
}
