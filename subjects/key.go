package subjects

import (
	"strings"

	"github.com/oneturn/oneturn/events"
)

// A journal key has seven tokens: visibility, tenant, chat, turn, call, kind and, for some kinds, an id. [Key] is
// the part that all records of a call share; its methods name records and filters, [ParseKey] is the way back.

// SingleCall is the call token of a turn that is one call, and of a program as a whole.
const SingleCall = "0"

// Visibility is the first token of a journal key.
const (
	public  = "e"
	private = "p"
)

// Key names the journal records of one call of a turn. All fields are tokens.
type Key struct {
	App, Chat, Turn, Call string
}

// TurnKey returns the key of a turn: of its only call, or of its program.
func TurnKey(app, chat, run, turn string) Key {
	return Key{App: Token(app), Chat: Token(chat), Turn: TurnToken(run, turn), Call: SingleCall}
}

// MessageKey returns the key of a message of an agent or a user.
func MessageKey(app, chat, run, id string) Key {
	return Key{App: Token(app), Chat: Token(chat), Turn: MessageToken(run, id), Call: SingleCall}
}

func (k Key) turnPart() string { return k.App + "." + k.Chat + "." + k.Turn }

// String returns the key without visibility and kind.
func (k Key) String() string { return k.turnPart() + "." + k.Call }

// Public is the journal key of a record that is an event. An id, if the kind has one, is
// a plain token.
func (k Key) Public(kind string, id ...string) string { return k.record(public, kind, id) }

// Private is the journal key of a record that is not republished.
func (k Key) Private(kind string, id ...string) string { return k.record(private, kind, id) }

func (k Key) record(visibility, kind string, id []string) string {
	if len(id) > 0 {
		return visibility + "." + k.turnPart() + "." + k.Call + "." + kind + "." + id[0]
	}
	return visibility + "." + k.turnPart() + "." + k.Call + "." + kind
}

// WithCall returns the key of another call of the turn.
func (k Key) WithCall(token string) Key {
	k.Call = token
	return k
}

// OfTurn returns the key of the turn, see [TurnKey].
func (k Key) OfTurn() Key { return k.WithCall(SingleCall) }

// TurnRecords matches all records of all calls of the turn, and its [Key.ReuseNote]s.
func (k Key) TurnRecords() string { return "*." + k.turnPart() + ".>" }

// PublicRecords matches the public records of all calls of the turn.
func (k Key) PublicRecords() string { return public + "." + k.turnPart() + ".>" }

// Records matches all records of the call.
func (k Key) Records() string { return "*." + k.String() + ".>" }

// fingerprintDigits of a fingerprint in hex distinguish the turns under one reused key.
const fingerprintDigits = 16

// Reuse returns the key of a turn that runs under the key of k, run id and turn key, though
// that was used before with other data: the fingerprint of its data, in hex, makes it a
// separate turn.
func (k Key) Reuse(run, turn, fingerprint string) Key {
	k.Turn = ReusedTurnToken(run, turn, fingerprint[:min(len(fingerprint), fingerprintDigits)])
	return k
}

// ReuseNote is the journal key of the note under k that its turn key was used again, for data
// with this fingerprint. The note belongs to the turn, not to a call of it.
func (k Key) ReuseNote(fingerprint string) string {
	k.Call = Absent
	return k.Private(events.RecordReused, fingerprint[:min(len(fingerprint), fingerprintDigits)])
}

// ReuseNotes matches every [Key.ReuseNote] of k.
func (k Key) ReuseNotes() string {
	k.Call = Absent
	return k.Private(events.RecordReused, "*")
}

// ChatRecords matches the public records of a chat. The tenant is a token, the chat an id.
func ChatRecords(appToken, chat string) string {
	return public + "." + appToken + "." + Token(chat) + ".>"
}

// PublicRecords matches the public records of all chats.
func PublicRecords() string { return public + ".>" }

// Record is a parsed journal key.
type Record struct {
	Key
	Private bool
	Kind    string
	ID      string // "" when the kind has none
}

// Name is the journal key, the inverse of [ParseKey].
func (r Record) Name() string {
	var id []string
	if r.ID != "" {
		id = []string{r.ID}
	}
	visibility := public
	if r.Private {
		visibility = private
	}
	return r.record(visibility, r.Kind, id)
}

// ParseKey parses a journal key. It reports false for anything else.
func ParseKey(key string) (Record, bool) {
	parts := strings.Split(key, ".")
	if len(parts) < 6 || len(parts) > 7 || parts[0] != public && parts[0] != private {
		return Record{}, false
	}
	for _, p := range parts {
		if p == "" || p == "*" || p == ">" {
			return Record{}, false
		}
	}
	r := Record{
		Key:     Key{App: parts[1], Chat: parts[2], Turn: parts[3], Call: parts[4]},
		Private: parts[0] == private,
		Kind:    parts[5],
	}
	if len(parts) == 7 {
		r.ID = parts[6]
	}
	return r, true
}
