// checker_message_document.go compares the documents of chats, in which changed variables and speakers are decided, with the records of
// their messages.

package oneturntest

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/internal/variables"
)

// checkDocuments compares the documents of chats with the records of their messages.
func (c *checker) checkDocuments() {
	chats := map[string][]*messageFacts{}
	for _, m := range c.messages {
		if m.event != nil && m.text != nil {
			chats[m.key.App+"."+m.key.Chat] = append(chats[m.key.App+"."+m.key.Chat], m)
		}
	}
	for _, chat := range slices.Sorted(maps.Keys(chats)) {
		if c.facts.Documents == nil {
			return
		}
		contents, err := variables.ReadContents(c.facts.Documents[chat])
		if err != nil {
			c.failf(invariantMessage, "", "the document of chat %s: %v", chat, err)
			continue
		}
		c.checkDocument(chats[chat], contents)
	}
}

// checkDocument: what is decided for each message is what its records report, later messages are applied after earlier ones of
// their run, and a variable has the value that the last of them has set.
func (c *checker) checkDocument(messages []*messageFacts, contents *variables.Contents) {
	byToken := map[string]*messageFacts{}
	for _, m := range messages {
		byToken[m.key.Turn] = m
	}
	run, sequence := "", int64(0)
	last := map[string]setBy{}
	decided := map[*messageFacts]bool{}
	for _, d := range contents.Decisions {
		m := byToken[d.Message]
		if m == nil || m.text.Seq != d.Seq {
			continue // of an answer, or of an earlier message of the id
		}
		if decided[m] {
			c.failf(invariantMessage, m.name, "it is decided twice")
		}
		decided[m] = true
		c.checkDecision(m, &d)
		if d.OutOfOrder {
			continue
		}
		if s := m.event.TurnSequence; s > 0 {
			if run == m.event.RunID && s < sequence {
				c.failf(invariantMessage, m.name, "it is applied after sequence %d of its run, and has %d", sequence, s)
			}
			run, sequence = m.event.RunID, s
		}
		for _, u := range d.Updates {
			if u.Step >= 0 && u.Step < len(m.event.Changes) {
				last[u.Variable] = setBy{m, m.event.Changes[u.Step].Value}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(last)) {
		has, by := contents.Values[name], last[name]
		if has.Written == by.message.text.Seq && !sameJSON(by.value, has.JSON) {
			c.failf(invariantMessage, by.message.name, "variable %q is %s, and the message has set it to %v", name, has.JSON, by.value)
		}
	}
	for _, m := range messages {
		if len(m.updates) > 0 && !decided[m] && !contents.Dropped {
			c.failf(invariantMessage, m.name, "variables are reported as set, and the document of the chat has no decision")
		}
	}
}

// setBy is the value of a variable, and the message that has set it.
type setBy struct {
	message *messageFacts
	value   any
}

// checkDecision compares what the document of the chat has decided for a message with its records.
func (c *checker) checkDecision(m *messageFacts, d *variables.Decision) {
	decided, reported := make([]string, 0, len(d.Updates)), make([]string, 0, len(m.updates))
	for _, u := range d.Updates {
		decided = append(decided, u.Variable)
	}
	for _, r := range m.updates {
		var e events.ContextUpdate
		if parse(r.Data, &e) == nil {
			reported = append(reported, e.Variable)
		}
	}
	if !slices.Equal(decided, reported) {
		c.failf(invariantMessage, m.name, "the document of the chat has it set %q, and %q is reported", decided, reported)
	}
	if d.Handoff == nil || m.handoff == nil {
		if d.Handoff == nil && m.handoff != nil {
			c.failf(invariantMessage, m.name, "it hands off, and the document of the chat has no decision")
		}
		return
	}
	var want handoff.Decision
	var has events.Handoff
	if json.Unmarshal(d.Handoff, &want) != nil || parse(m.handoff.Data, &has) != nil {
		return // reported before, or by the worker
	}
	to := ""
	if has.To != nil {
		to = *has.To
	}
	if to != want.To || has.Reason != string(want.Reason) || has.Code != want.Code {
		c.failf(invariantMessage, m.name, "it hands off to %q (%s %s), decided was %q (%s %s)", to, has.Reason, has.Code, want.To, want.Reason, want.Code)
	}
}
