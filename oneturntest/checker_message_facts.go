// checker_message_facts.go collects what is known of the messages of agents and users, and of the turns that they have made.

package oneturntest

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// messagePrefix begins the token that stands in the place of a turn in the keys of a message.
var messagePrefix = strings.TrimSuffix(subjects.MessageToken("", ""), "0-") //nolint:gochecknoglobals // a constant

// messageFacts has what is known of a message of an agent or a user.
type messageFacts struct {
	key     subjects.Key
	name    string // journal key
	sent    []*SentMessage
	records []idempotency.Record // in order
	turns   []*turnFacts         // whose claims name the message

	text    *idempotency.Record
	event   *events.Text // nil if it cannot be read
	updates []*idempotency.Record
	output  *idempotency.Record
	handoff *idempotency.Record
	calls   map[string]*callFacts // of the decider of its handoff, and of corrections
}

// fingerprint returns the fingerprint of a sent message, as the record of its text has it.
func (s *SentMessage) fingerprint() string {
	sum, err := s.Event.Fingerprint()
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum[:])
}

// message returns the facts of a message.
func (c *checker) message(key subjects.Key) *messageFacts {
	m := c.messages[key.OfTurn()]
	if m == nil {
		m = &messageFacts{key: key.OfTurn(), name: key.OfTurn().String(), calls: map[string]*callFacts{}}
		c.messages[key.OfTurn()] = m
	}
	return m
}

// groupMessages finds the messages, so that their records are not taken for records of turns.
func (c *checker) groupMessages() {
	for i := range c.facts.Messages {
		e := &c.facts.Messages[i].Event
		m := c.message(subjects.MessageKey(e.App, e.Chat, e.Run, e.ID))
		m.sent = append(m.sent, &c.facts.Messages[i])
	}
	for i := range c.facts.Journal {
		if k, ok := subjects.ParseKey(c.facts.Journal[i].Key); ok && (k.Kind == events.RecordText || strings.HasPrefix(k.Turn, messagePrefix)) {
			c.message(k.Key)
		}
	}
}

// groupTurns finds the turns that messages have made: a message whose text names a turn is the publish of that turn.
func (c *checker) groupTurns() {
	for _, m := range c.messages {
		c.noteMessage(m)
	}
	for _, t := range slices.Collect(maps.Values(c.turns)) {
		for i := range t.records {
			r := &t.records[i]
			if k, _ := subjects.ParseKey(r.Key); k.Kind != events.KindToolCall || k.Private || k.Call != subjects.SingleCall || k.ID != "" || r.Meta.Message == "" {
				continue
			}
			of, _ := subjects.ParseKey(r.Key)
			of.Turn = r.Meta.Message
			m := c.message(of.Key)
			m.turns = append(m.turns, t)
			if m.event != nil && m.event.Turn != "" {
				m.accept(t)
			}
		}
	}
	for _, m := range c.messages {
		if m.event != nil && m.event.Turn != "" && len(m.sent) > 0 {
			m.accept(c.turn(m.turnKey()))
		}
	}
}

// turnKey is the key of the turn that the text of the message names.
func (m *messageFacts) turnKey() subjects.Key {
	return subjects.TurnKey(m.event.AppID, m.event.ChatID, m.event.RunID, m.event.Turn)
}

// accept notes that the message has published a turn.
func (m *messageFacts) accept(t *turnFacts) {
	if t.accepted != nil {
		return
	}
	t.accepted = &Accepted{App: m.event.AppID, Chat: m.event.ChatID, Run: m.event.RunID, Turn: m.event.Turn, MayFail: m.event.Unread != nil}
	for _, s := range m.sent {
		t.accepted.MayFail, t.accepted.MayWait = t.accepted.MayFail || s.MayFail, t.accepted.MayWait || s.MayWait
		if t.accepted.At.IsZero() {
			t.accepted.Begun, t.accepted.At = s.Begun, s.At
		}
	}
}

// noteMessage sorts the records of a message.
func (c *checker) noteMessage(m *messageFacts) {
	for i := range m.records {
		r := &m.records[i]
		k, _ := subjects.ParseKey(r.Key)
		var into **idempotency.Record
		switch {
		case k.Private:
			continue
		case k.Call != subjects.SingleCall:
			f := m.calls[k.Call]
			if f == nil {
				f = &callFacts{name: k.String(), token: k.Call}
				m.calls[k.Call] = f
			}
			if into = &f.call; k.Kind == events.KindToolResponse {
				into = &f.response
			}
		case k.Kind == events.RecordText:
			into = &m.text
		case k.Kind == events.RecordContextUpdate:
			m.updates = append(m.updates, r)
			continue
		case k.Kind == events.RecordStructuredOutput:
			into = &m.output
		case k.Kind == events.RecordHandoff:
			into = &m.handoff
		default:
			continue
		}
		if k.ID != "" || *into != nil {
			c.failf(invariantMessage, m.name, "a second %s: %s", k.Kind, r.Key)
		}
		*into = r
	}
	if m.text != nil {
		m.event, _ = events.ReadText(m.text.Data) // checkText reports the error
	}
}
