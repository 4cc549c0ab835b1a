package subjects

import (
	"strings"

	"github.com/oneturn/oneturn/events"
)

// QuestionsOfChat matches the questions of a chat. The tenant is a token, the chat an id.
func QuestionsOfChat(appToken, chat string) string {
	return Key{App: appToken, Chat: Token(chat), Turn: "*", Call: "*"}.Public(events.RecordAsk, "*")
}

// Acks matches the live copies of all acks: each closes a question.
func (s Space) Acks() string { return s.EventsOfKind(events.RecordAck + ".*") }

// EventRecord returns the record that a live copy is of. It reports false for other subjects.
func (s Space) EventRecord(subject string) (Record, bool) {
	rest, ok := strings.CutPrefix(subject, s.EventsPrefix()+".")
	if !ok {
		return Record{}, false
	}
	return ParseKey(public + "." + rest)
}

// AskTimer is the subject of the schedule that ends the time to answer a question, an id.
func (s Space) AskTimer(k Key, ask string) string {
	return s.prefix + ".timer.ask." + k.String() + "." + Token(ask)
}

// AskTimersOfTenant matches the schedules of the questions of a tenant, a token, or of all
// tenants for "*".
func (s Space) AskTimersOfTenant(appToken string) string {
	return s.AskTimers(Key{App: appToken, Chat: "*", Turn: "*", Call: "*"}, "*")
}

// AskTimers matches the schedules of questions in calls: the fields of the key and the question
// are tokens or "*".
func (s Space) AskTimers(calls Key, askToken string) string {
	return s.prefix + ".timer.ask." + calls.String() + "." + askToken
}

// AskDue is the subject on which the server delivers that end.
func (s Space) AskDue(k Key, ask string) string {
	return s.prefix + ".due.ask." + k.String() + "." + Token(ask)
}

// ParseAskDue returns the call and the token of the question of a [Space.AskDue]. It reports
// false for any other subject.
func (s Space) ParseAskDue(subject string) (k Key, askToken string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".due.ask.")
	if !ok {
		return Key{}, "", false
	}
	return parseAsk(rest)
}

// ParseAskTimer is [Space.ParseAskDue] for a [Space.AskTimer].
func (s Space) ParseAskTimer(subject string) (k Key, askToken string, ok bool) {
	rest, ok := strings.CutPrefix(subject, s.prefix+".timer.ask.")
	if !ok {
		return Key{}, "", false
	}
	return parseAsk(rest)
}

func parseAsk(rest string) (k Key, askToken string, ok bool) {
	at := strings.LastIndexByte(rest, '.')
	if at < 0 {
		return Key{}, "", false
	}
	if _, _, err := Untoken(rest[at+1:]); err != nil {
		return Key{}, "", false
	}
	k, ok = ParseCall(rest[:at])
	if !ok {
		return Key{}, "", false
	}
	return k, rest[at+1:], true
}

// HeaderReply is the header of an inbound answer that names the subject for its verdict. The
// reply subject of the message itself is JetStream's, for the acknowledgement of the publish.
const HeaderReply = "Oneturn-Reply"

// HeaderDepth is the header of a call, and of an inbound turn that such a call publishes, with the number of programs that it is
// in. Without the header it is 0.
const HeaderDepth = "Oneturn-Depth"
