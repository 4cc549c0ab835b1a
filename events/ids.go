package events

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// JoinIDs joins ids so that no two lists give the same bytes: each is its length in bytes,
// ':' and itself. It is what every hash over ids is taken of.
func JoinIDs(ids ...string) []byte { return appendIDs(nil, ids...) }

func appendIDs(b []byte, ids ...string) []byte {
	for _, id := range ids {
		b = strconv.AppendInt(b, int64(len(id)), 10)
		b = append(b, ':')
		b = append(b, id...)
	}
	return b
}

// tenant returns the app, or what an absent one stands for.
func (id TurnID) tenant() string {
	if id.App == "" {
		return DefaultApp
	}
	return id.App
}

// CallID returns the tool_call_id of a turn: its turn key or, with a run id, the
// [QualifiedCallID]. turnToken is the subject token of the turn (package subjects).
func CallID(id TurnID, turnToken string) string {
	if id.Run == "" {
		return id.Turn
	}
	return QualifiedCallID(id.Turn, turnToken)
}

// QualifiedCallID returns "<turn key>@<8 hex of sha256(turnToken)>": the call id of a turn
// whose key alone is not unique in its chat (a run id, or `on_key_reuse: run`).
func QualifiedCallID(turn, turnToken string) string {
	sum := sha256.Sum256([]byte(turnToken))
	return turn + "@" + hex.EncodeToString(sum[:qualifierBytes])
}

const qualifierBytes = 4

// Unqualified returns the turn key in the id of a call, if that may be a [QualifiedCallID]: it ends
// in "@" and 8 hex digits.
func Unqualified(callID string) (turn string, ok bool) {
	at := len(callID) - 2*qualifierBytes - 1
	if at <= 0 || callID[at] != '@' || strings.Trim(callID[at+1:], "0123456789abcdef") != "" {
		return "", false
	}
	return callID[:at], true
}

// turnOfCallID undoes [CallID], and what questions ("/…") and steps ("#…") append to it.
// Without a run id it cannot distinguish an appended part from the key and returns callID.
func turnOfCallID(callID, run string) string {
	at := strings.LastIndexByte(callID, '@')
	if run == "" || at < 0 {
		return callID
	}
	qualifier := callID[at+1:]
	if end := strings.IndexAny(qualifier, "/#"); end >= 0 {
		qualifier = qualifier[:end]
	}
	if _, err := hex.DecodeString(qualifier); err != nil || len(qualifier) != 2*qualifierBytes {
		return callID
	}
	return callID[:at]
}

// IdempotencyKey returns the key that a tool gets for call (its call id), the same for every
// run of it: hex of sha256(app, chat, run, turn key, call), joined by [JoinIDs].
func IdempotencyKey(id TurnID, call string) string {
	const usual = 256
	return Hex(sha256.Sum256(appendIDs(make([]byte, 0, usual), id.tenant(), id.Chat, id.Run, id.Turn, call)))
}

// Hex returns a hash in hex.
func Hex(sum [sha256.Size]byte) string {
	var b [2 * sha256.Size]byte
	hex.Encode(b[:], sum[:])
	return string(b[:])
}

// MsgID returns the Nats-Msg-Id of an inbound event, 38 characters: 22 of
// base64url(sha256(kind, app, chat, run, turn key)) and 16 hex of the fingerprint, so that
// the same key with other data still reaches a worker.
func MsgID(kind string, id TurnID, fp [32]byte) string {
	const idChars, fpBytes = 22, 8
	sum := sha256.Sum256(JoinIDs(kind, id.tenant(), id.Chat, id.Run, id.Turn))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:idChars] + hex.EncodeToString(fp[:fpBytes])
}
