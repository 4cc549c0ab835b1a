// checker_message_follow.go has what follows from a message: its turn, the next speaker, and the calls of models for either.

package oneturntest

import (
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/idempotency"
)

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
		if want := m.event.TurnFingerprint(); called.Turn == m.event.Turn && want != "" && claim.Meta.Fingerprint != want && claim.Meta.Fingerprint != "" {
			c.failf(invariantMessage, m.name, "its turn is claimed with other data than the object in its text")
		}
		if claim.Seq < m.text.Seq {
			c.failf(invariantMessage, m.name, "its turn is claimed before its text is stored")
		}
	}
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
	if claim.Meta.Fingerprint == m.event.TurnFingerprint() && (m.handoff == nil || claim.Seq < m.handoff.Seq) {
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
