package sim

import (
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// Invariants of messages of agents and users. The test kit has the invariants of their records ([oneturntest.CheckMessages]); here are the ones
// that only a simulation can check: that a message is settled after its last due record. check_document.go has the document.

// stored returns the last record under a key of the journal, nil if there is none.
func (w *world) stored(key string) *idempotency.Record {
	seq := w.store.keys[key]
	if seq == 0 {
		return nil
	}
	return &w.store.log[seq-1]
}

// textOf returns the text of a message, nil if it is not stored.
func (w *world) textOf(c *chatMessage) *idempotency.Record {
	return w.stored(c.key.Public(events.RecordText))
}

// readText decodes a text that is stored.
func (w *world) readText(r *idempotency.Record) *events.Text {
	text, err := events.ReadText(r.Data)
	if err != nil {
		w.violatef("text %d cannot be read: %v", r.Seq, err)
		return &events.Text{}
	}
	return text
}

// handsOff reports whether a handoff follows from a message.
func handsOff(text *idempotency.Record) bool {
	return text.Meta.Outcome == idempotency.DueHandoff || text.Meta.Outcome == idempotency.DueTurnHandoff
}

// lastTurn returns the turn of a message after which it hands off: its own, or if that is corrected the one of a correction, which may
// not be claimed yet.
func (w *world) lastTurn(c *chatMessage) (last *turn, h history) {
	for _, last = range c.turns {
		h = w.history(last)
		if h.claim == nil || h.claim.Meta.Message != c.key.Turn || len(h.responses) == 0 || !h.responses[0].Body.Correcting {
			break
		}
	}
	return last, h
}

// isOpen reports whether a sweep has to complete a message: its handoff is missing, or of one without a handoff its turn has
// no claim for it, or the one of its correction, and no worker has noted that nothing more follows.
func (w *world) isOpen(c *chatMessage) bool {
	text := w.textOf(c)
	switch {
	case text == nil, text.Meta.Outcome == idempotency.DueNothing:
		return false
	case handsOff(text):
		return w.stored(c.key.Public(events.RecordHandoff)) == nil
	}
	_, h := w.lastTurn(c)
	own := h.claim != nil && h.claim.Meta.Message == c.key.Turn
	return !own && w.stored(c.key.Private(events.RecordTurn)) == nil
}

// missing names a record of a message that is due and not stored, "" if none is.
func (w *world) missing(c *chatMessage, r *idempotency.Record) string {
	text := w.readText(r)
	decision := w.decisionOf(c, r)
	if len(text.Changes) > 0 && !text.OutOfOrder && decision == nil {
		return "the decision in the document"
	}
	if decision != nil {
		for _, u := range decision.Updates {
			if key := c.key.Public(events.RecordContextUpdate, subjects.Token(u.Variable)); w.stored(key) == nil {
				return "the change of " + u.Variable
			}
		}
	}
	if text.Turn == "" && text.Model != "" && (text.StructuredOutput != nil || text.Unread != nil) && w.stored(c.key.Public(events.RecordStructuredOutput)) == nil {
		return "its structured output"
	}
	last, h := w.lastTurn(c)
	if last != c.turn && h.claim == nil {
		return "the claim of " + last.id.Turn + ", its correction,"
	}
	if runs := h.claim != nil && len(h.responses) == 0; handsOff(r) && !runs && w.stored(c.key.Public(events.RecordHandoff)) == nil {
		return "its handoff"
	}
	return ""
}

// checkMessageSettled checks that a message which is settled leaves no due record of a message to a sweep, and reports whether there
// is nothing more to check.
func (w *world) checkMessageSettled(m *message, by *thread) (over bool) {
	c := m.chat
	if c == nil {
		if m.turn.by != nil {
			w.checkComplete(m, m.turn.by, by)
		}
		return false
	}
	text := w.textOf(c)
	switch {
	case m.kind == events.KindResume:
		if text != nil {
			w.checkComplete(m, c, by)
		}
		return true
	case w.letters[m.seq] != "":
		return true
	case text == nil:
		w.violatef("%s: #%d was settled, and its text is not stored", c.event.ID, m.seq)
		return true
	case text.Meta.Fingerprint != m.content:
		w.violatef("%s: #%d was settled, has other content than the text, and is not a dead letter", c.event.ID, m.seq)
		return true
	}
	w.checkComplete(m, c, by)
	return w.readText(text).Turn == ""
}

// checkComplete: a message is settled only when all is stored that follows from a message of an agent or a user, unless another one
// that completes it is still in the stream.
func (w *world) checkComplete(m *message, c *chatMessage, by *thread) {
	text := w.textOf(c)
	purged := c.purged || slices.ContainsFunc(c.turns, func(t *turn) bool { return t.purged }) // then a sweep may have to complete it
	if text == nil || purged || m.late || by.noRoom || by.sawStaleRead || c.sawStaleRead > 0 {
		return
	}
	what := w.missing(c, text)
	if what == "" || m.chat == nil && !w.claimNames(c, m.turn) {
		return
	}
	if slices.ContainsFunc(w.queue, func(x *message) bool { return x.chat == c && x.refusedForRoom }) {
		return // a dead letter because there was no room: a sweep completes it
	}
	held := map[uint64]bool{} // messages that hold a turn, or have ended one
	for _, t := range c.turns {
		h := w.history(t)
		n := h.newest.Seq
		if n != 0 && n != m.seq && w.queue[n-1].kind == events.KindResume {
			return // a late acknowledgement may have settled it: the next sweep asks again
		}
		if held[n] = true; len(h.responses) > 0 {
			held[w.store.by[h.responses[0].Meta.Nonce]] = true
		}
	}
	completes := func(x *message) bool {
		switch {
		case x == m || !x.lives():
			return false
		case x.chat == c && (x.kind == events.KindResume || x.content == text.Meta.Fingerprint):
			return true
		}
		return x.seq != 0 && held[x.seq]
	}
	if !slices.ContainsFunc(w.queue, completes) && !slices.ContainsFunc(w.unsent, func(x *message) bool { return x.first.After(worldBegins) && completes(x) }) {
		w.violatef("%s: #%d (%s) was settled, and %s is not stored", c.event.ID, m.seq, m.kind, what)
	}
}

// claimNames reports whether a turn was claimed for a message.
func (w *world) claimNames(c *chatMessage, t *turn) bool {
	h := w.history(t)
	return h.claim != nil && h.claim.Meta.Message == c.key.Turn
}

// isPublished reports whether the turn of a message has to have a response: a stored text names it, or it was published as an event.
func (w *world) isPublished(t *turn) bool {
	if text := w.textOf(t.by); text != nil && w.readText(text).Turn == t.id.Turn {
		return true
	}
	return slices.ContainsFunc(w.queue, func(m *message) bool { return m.turn == t && m.kind == events.KindStructuredOutputReady })
}

// mayConflict reports whether a message of an agent or a user, or one that completes it, may be a dead letter: its id has other content
// already, or its turn or the one of a correction other data.
func (w *world) mayConflict(c *chatMessage, m *message, reason string) bool {
	text := w.textOf(c)
	if text == nil {
		return false
	}
	if reason == deadletter.ReasonMessageConflict {
		return m.chat == c && text.Meta.Fingerprint != m.content
	}
	return reason == deadletter.ReasonConflict && slices.ContainsFunc(c.turns, func(t *turn) bool {
		h := w.history(t)
		return h.claim != nil && h.claim.Meta.Message != c.key.Turn && (m.chat == c || m.turn != t)
	})
}

// checkMessages checks the records of all messages at the end of a schedule.
func (w *world) checkMessages() {
	if len(w.conversation) == 0 {
		return
	}
	facts := &oneturntest.Facts{Documents: map[string][]byte{}}
	if data := w.documents.data[subjects.ContextKey(app, chat)]; data != nil {
		facts.Documents[subjects.ContextKey(app, chat)] = data
	}
	for i := range w.store.log {
		if r := w.store.log[i]; !w.store.expired[r.Seq] {
			facts.Journal = append(facts.Journal, r)
		}
	}
	for _, m := range w.queue {
		if m.sent != nil && m.first.Equal(m.stored) && !m.purgedUnread(w) {
			facts.Messages = append(facts.Messages, oneturntest.SentMessage{Event: *m.sent, MayFail: true})
		}
		if reason := w.letters[m.seq]; reason != "" {
			facts.Dead = append(facts.Dead, oneturntest.DeadLetter{Reason: reason, Subject: m.subject})
		}
	}
	for _, v := range oneturntest.CheckMessages(facts) {
		w.violatef("%s", v)
	}
}

// purgedUnread reports whether a message vanished that would have been a conflict.
func (m *message) purgedUnread(w *world) bool {
	text := w.textOf(m.chat)
	return m.purged && len(m.copies) == 0 && w.letters[m.seq] == "" && text != nil && text.Meta.Fingerprint != m.content
}

// countMessages counts how messages went.
func (w *world) countMessages(counts map[string]int) {
	counts["decider asked"] += w.judged
	w.countCorrections(counts)
	for _, c := range w.conversation {
		r := w.textOf(c)
		if r == nil {
			continue
		}
		text := w.readText(r)
		count := func(name string, of bool) {
			if of {
				counts[name]++
			}
		}
		counts["texts"]++
		count("of users", text.Agent == events.AgentUser)
		count("out of order", text.OutOfOrder)
		count("that cannot be read", text.Unread != nil)
		count("structured outputs", w.stored(c.key.Public(events.RecordStructuredOutput)) != nil)
		if d := w.decisionOf(c, r); d != nil {
			counts["changes"] += len(d.Updates)
		}
		if w.stored(c.key.Public(events.RecordHandoff)) != nil {
			counts["handoffs"]++
			last, h := w.lastTurn(c)
			count("handoffs after a turn", w.claimNames(c, last))
			count("handoffs after a parked turn", w.claimNames(c, last) && len(h.parks) > 0)
			count("handoffs after a correction", last != c.turn)
		}
		h := w.history(c.turn)
		count("turns", h.claim != nil && w.claimNames(c, c.turn))
		count("turns by an event", h.claim != nil && !w.claimNames(c, c.turn))
		count("purged", c.purged)
	}
	for _, m := range w.queue {
		if w.letters[m.seq] == deadletter.ReasonMessageConflict {
			counts["conflicts"]++
		}
		if m.chat != nil && m.sweep != nil {
			counts["resumes by sweeps"]++
		}
	}
}
