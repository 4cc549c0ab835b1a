// checker_message.go collects what is known of the messages of agents and users, and compares the records of each with its text.
// checker_message_follow.go has what follows from a message: its turn, its handoff, and the document of the chat.

package oneturntest

import (
	"bytes"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/subjects"
)

// invariantMessage is the number of the invariant that the messages of agents and users share.
const invariantMessage = "I14"

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

// CheckMessages returns the violations of [Check] that the messages of agents and users have.
func CheckMessages(f *Facts) []Violation {
	c := newChecker(f, nil)
	c.group()
	for _, t := range c.turns {
		for i := range t.records {
			k, _ := subjects.ParseKey(t.records[i].Key)
			c.note(c.call(k.Key), k, &t.records[i])
		}
	}
	c.found = slices.DeleteFunc(c.found, func(v Violation) bool { return v.Invariant != invariantMessage })
	c.checkMessages()
	return c.found
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

// checkMessages compares all messages with what was published, and with what follows from each.
func (c *checker) checkMessages() {
	keys := slices.SortedFunc(maps.Keys(c.messages), func(a, b subjects.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if m := c.messages[key]; c.checkText(m) {
			c.checkUpdates(m)
			c.checkOutput(m)
			c.checkTurns(m)
			c.checkHandoff(m)
			c.checkCalls(m)
		}
	}
	c.checkConflicts()
	c.checkDocuments()
}

// checkText compares the text of a message with what was published, and reports whether it can be read.
func (c *checker) checkText(m *messageFacts) bool {
	fail := func(format string, args ...any) bool {
		c.failf(invariantMessage, m.name, format, args...)
		return false
	}
	switch {
	case m.text == nil && len(m.turns) > 0:
		return fail("a turn is claimed for it, and it has no text")
	case m.text == nil && len(m.records) > 0:
		return fail("it has records and no text: %s", m.records[0].Key)
	case m.text == nil:
		if !c.deadLetterOf(m.sent[0]) {
			fail("accepted, and neither stored nor a dead letter")
		}
		return false
	case len(m.sent) == 0:
		return fail("a message that was not published was stored")
	case m.event == nil:
		return fail("its text cannot be read")
	}
	if !slices.ContainsFunc(m.sent, func(s *SentMessage) bool { return s.fingerprint() == m.text.Meta.Fingerprint }) {
		fail("it is stored with content that was not published")
	}
	if first := m.records[0]; first.Key != m.text.Key {
		fail("%s is stored before its text", first.Key)
	}
	kind := events.KindText
	if m.event.Agent == events.AgentUser {
		kind = events.KindUserMessage
	}
	if parsed, err := events.Parse(m.text.Data); err == nil && parsed.Kind != kind {
		fail("its text is an event of kind %q, want %q", parsed.Kind, kind)
	}
	if subjects.MessageKey(m.event.AppID, m.event.ChatID, m.event.RunID, m.event.MessageID) != m.key {
		c.failf("I8", m.name, "its text belongs to tenant %q, chat %q, run %q, message %q", m.event.AppID, m.event.ChatID, m.event.RunID, m.event.MessageID)
	}
	return true
}

// step returns the number of the step of a message that sets a variable to a value, -1 if there is none.
func (m *messageFacts) step(variable string, value any) int {
	want, err := events.AppendJSON(nil, value)
	if err != nil {
		return -1
	}
	return slices.IndexFunc(m.event.Changes, func(change events.TextChange) bool {
		has, err := events.AppendJSON(nil, change.Value)
		return err == nil && change.Variable == variable && bytes.Equal(has, want)
	})
}

// checkUpdates: each change of a variable is one that the text has, they are stored in its order, and before the claim of its turn.
func (c *checker) checkUpdates(m *messageFacts) {
	last := -1
	for _, r := range m.updates {
		k, _ := subjects.ParseKey(r.Key)
		var e events.ContextUpdate
		if err := parse(r.Data, &e); err != nil {
			c.failf(invariantMessage, m.name, "%s cannot be read: %v", r.Key, err)
			continue
		}
		if e.MessageID != m.event.MessageID || e.ChatID != m.event.ChatID || e.AppID != m.event.AppID || k.ID != subjects.Token(e.Variable) {
			c.failf("I8", m.name, "%s reports variable %q of message %q", r.Key, e.Variable, e.MessageID)
		}
		switch step := m.step(e.Variable, e.Value); {
		case step < 0:
			c.failf(invariantMessage, m.name, "%q is reported as set to a value that its text does not have", e.Variable)
		case step <= last:
			c.failf(invariantMessage, m.name, "%q is reported after a variable that its text has later", e.Variable)
		default:
			last = step
		}
		if m.event.OutOfOrder {
			c.failf(invariantMessage, m.name, "%q is set, though a later message of the run was handled before", e.Variable)
		}
		for _, t := range m.turns {
			if claim := t.own().call; claim != nil && claim.Seq < r.Seq {
				c.failf(invariantMessage, m.name, "%q is reported after the claim of its turn", e.Variable)
			}
		}
		for _, after := range []*idempotency.Record{m.output, m.handoff} {
			if after != nil && after.Seq < r.Seq {
				c.failf(invariantMessage, m.name, "%q is reported after %s", e.Variable, after.Key)
			}
		}
	}
}

// checkOutput: an agent that has a model and no tool has its structured output, or why it has none.
func (c *checker) checkOutput(m *messageFacts) {
	due := m.event.Turn == "" && m.event.Model != "" && (m.event.StructuredOutput != nil || m.event.Unread != nil)
	switch {
	case due && m.output == nil:
		c.failf(invariantMessage, m.name, "its structured output is not stored")
		return
	case !due && m.output != nil:
		c.failf(invariantMessage, m.name, "a structured output is stored that its text does not have")
		return
	case !due:
		return
	}
	var e events.StructuredOutput
	if err := parse(m.output.Data, &e); err != nil {
		c.failf(invariantMessage, m.name, "its structured output cannot be read: %v", err)
		return
	}
	object, unread, known := m.outputOf()
	if !known {
		return // it is outside of the record
	}
	want, _ := events.AppendJSON(nil, object)
	has, _ := events.AppendJSON(nil, e.Payload)
	switch {
	case e.Success && unread, e.Success && !bytes.Equal(has, want):
		c.failf(invariantMessage, m.name, "its structured output is another one than its text has, or its last correction")
	case !e.Success && e.Code != events.CodeValidationFailed:
		c.failf(invariantMessage, m.name, "its structured output failed with %q", e.Code)
	}
}

// outputOf returns the structured output of a message: of its last correction, or without one of its text.
func (m *messageFacts) outputOf() (object any, unread, known bool) {
	object, unread = m.event.StructuredOutput, m.event.Unread != nil
	for n := 1; ; n++ {
		call := m.calls["c"+strconv.Itoa(n)]
		if call == nil || call.response == nil {
			return object, unread, true
		}
		var r events.ToolResponse
		if parse(call.response.Data, &r) != nil || r.Code != "" {
			return object, true, true // the model has not replied
		}
		if _, outside := events.BlobOf(r.Payload); outside {
			return nil, false, false
		}
		correction, err := events.ReadCorrection(r.Payload)
		if err != nil {
			return nil, false, false
		}
		object, unread = correction.StructuredOutput, correction.Unread != nil
	}
}

// deadLetterOf reports whether a dead letter has the inbound subject of a message.
func (c *checker) deadLetterOf(s *SentMessage) bool {
	return slices.ContainsFunc(c.facts.Dead, func(d DeadLetter) bool { return strings.HasSuffix(d.Subject, s.subject()) })
}

// subject is how the inbound subjects of a message end.
func (s *SentMessage) subject() string {
	e := &s.Event
	return "." + strings.Join([]string{e.InboundKind(), subjects.Token(e.App), subjects.Token(e.Workflow), subjects.Token(e.Chat)}, ".")
}

// checkConflicts: each message whose id was used with other content before is reported by a dead letter, and no other is.
func (c *checker) checkConflicts() {
	want, letters, all := map[string]map[string]bool{}, map[string]int{}, map[string]int{}
	for _, m := range c.messages {
		for _, s := range m.sent {
			if want[s.subject()] == nil {
				want[s.subject()] = map[string]bool{}
			}
			if m.text != nil && s.fingerprint() != m.text.Meta.Fingerprint {
				want[s.subject()][m.name+" "+s.fingerprint()] = true
			}
		}
	}
	for _, d := range c.facts.Dead {
		subject := suffixOf(d.Subject, want)
		if all[subject]++; d.Reason == deadletter.ReasonMessageConflict {
			letters[subject]++
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(want)) {
		switch conflicts := len(want[subject]); {
		case all[subject] < conflicts: // a message may be a dead letter for another reason before its id has other content
			c.failf(invariantMessage, "", "%d messages on *%s have an id that other content has, and %d of them are dead letters", conflicts, subject, all[subject])
		case conflicts == 0 && letters[subject] > 0:
			c.failf(invariantMessage, "", "a message on *%s is a dead letter because of its id, which no other content has", subject)
		}
	}
}

// suffixOf returns the end of a subject that is a key of a map.
func suffixOf(subject string, in map[string]map[string]bool) string {
	for suffix := range in {
		if strings.HasSuffix(subject, suffix) {
			return suffix
		}
	}
	return subject
}
