package oneturntest

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/variables"
)

// What follows from a message: its turn, the next speaker, and the calls of models for either; and the document of the chat, in
// which changed variables and speakers are decided.

// checkTurns: a turn is made for a message only if its text names one, and has the object of the text.
func (c *checker) checkTurns(m *messageFacts) {
	for _, t := range m.turns {
		claim := t.own().call
		var called events.ToolCall
		switch {
		case claim == nil || parse(claim.Data, &called) != nil:
			continue // reported by the rules of turns
		case m.event.Turn == "":
			c.failf(invariantMessage, m.name, "turn %s is claimed for it, and its text names none", t.key)
			continue
		case called.Turn != m.event.Turn && !strings.HasPrefix(called.Turn, m.event.Turn+"~"):
			c.failf(invariantMessage, m.name, "turn %q is claimed for it, its text names %q", called.Turn, m.event.Turn)
			continue
		}
		if want := m.turnFingerprint(); called.Turn == m.event.Turn && want != "" && claim.Meta.Fingerprint != want && claim.Meta.Fingerprint != "" {
			c.failf(invariantMessage, m.name, "its turn is claimed with other data than the object in its text")
		}
		if claim.Seq < m.text.Seq {
			c.failf(invariantMessage, m.name, "its turn is claimed before its text is stored")
		}
	}
}

// turnFingerprint is the fingerprint of the turn that a message makes, "" if the object is not in the text itself.
func (m *messageFacts) turnFingerprint() string {
	object := m.event.StructuredOutput
	if m.event.Unread != nil {
		object = m.event.Content
	}
	if _, outside := events.BlobOf(object); outside {
		return ""
	}
	sum := events.Fingerprint(&events.StructuredOutputReady{Workflow: m.event.WorkflowName, Agent: m.event.Agent, Model: m.event.Model, Data: object})
	return hex.EncodeToString(sum[:])
}

// awaited returns the turns that end before the message hands off: those that were claimed for it, and the one that its text
// names if that was claimed before.
func (c *checker) awaited(m *messageFacts) []*turnFacts {
	all := slices.Clone(m.turns)
	if m.event.Turn == "" {
		return all
	}
	t := c.turns[m.turnKey().String()]
	if t == nil || slices.Contains(all, t) || t.own().call == nil {
		return all
	}
	claim := t.own().call
	if claim.Meta.Fingerprint == m.turnFingerprint() && (m.handoff == nil || claim.Seq < m.handoff.Seq) {
		all = append(all, t)
	}
	return all
}

// checkHandoff: the next speaker is stored if it is due, and after the response of the message's turn.
func (c *checker) checkHandoff(m *messageFacts) {
	due := m.text.Meta.Outcome == idempotency.DueHandoff || m.text.Meta.Outcome == idempotency.DueTurnHandoff
	if m.handoff == nil {
		ended := true
		for _, t := range c.awaited(m) {
			ended = ended && t.own().response != nil
		}
		if due && ended {
			c.failf(invariantMessage, m.name, "its handoff is due, and not stored")
		}
		return
	}
	if !due {
		c.failf(invariantMessage, m.name, "it hands off, and no handoff is due")
	}
	for _, t := range c.awaited(m) {
		response := t.own().response
		if response == nil || m.handoff.Seq < response.Seq {
			c.failf(invariantMessage, m.name, "it hands off before its turn %s has ended", t.key)
		}
	}
	var e events.Handoff
	switch err := parse(m.handoff.Data, &e); {
	case err != nil:
		c.failf(invariantMessage, m.name, "its handoff cannot be read: %v", err)
	case e.MessageID != m.event.MessageID || e.ChatID != m.event.ChatID || e.AppID != m.event.AppID:
		c.failf("I8", m.name, "its handoff belongs to chat %q, message %q", e.ChatID, e.MessageID)
	case e.From != m.event.Agent || e.Turn != m.event.Turn || e.TurnSequence != m.event.TurnSequence:
		c.failf(invariantMessage, m.name, "its handoff is from %q, turn %q, sequence %d", e.From, e.Turn, e.TurnSequence)
	case m.event.OutOfOrder && e.Reason != string(handoff.ReasonUndecided):
		c.failf(invariantMessage, m.name, "it hands off (%s), though a later message of the run was handled before", e.Reason)
	}
}

// checkCalls: what a model is asked for a message is stored before its answer. Another worker may have handed off meanwhile, by rules
// that ask no model.
func (c *checker) checkCalls(m *messageFacts) {
	for _, token := range slices.Sorted(maps.Keys(m.calls)) {
		f := m.calls[token]
		switch {
		case f.call == nil:
			c.failf(invariantMessage, m.name, "call %s has a response, and is not stored", token)
		case f.response != nil && f.response.Seq < f.call.Seq:
			c.failf(invariantMessage, m.name, "the response of call %s is stored before the call", token)
		}
	}
}

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
