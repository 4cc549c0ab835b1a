// checker_message.go compares the records of each message of an agent or a user with its text: changed variables, and the
// structured output.

package oneturntest

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// invariantMessage is the number of the invariant that the messages of agents and users share.
const invariantMessage = "I14"

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
			c.checkCorrections(m)
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
