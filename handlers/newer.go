package handlers

import (
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/mutant"
	"github.com/oneturn/oneturn/subjects"
)

// An acknowledgement of any delivery removes the message from the stream, also one that a later
// delivery holds as the lease of a turn that runs. So whoever acknowledges a message although its turn
// has not ended looks first whether a later delivery has claimed the turn or taken it over.

// keys are the keys under which a turn may have been claimed: its workflow may have run reused keys when it was.
func (t *turn) keys() []subjects.Key { return []subjects.Key{t.key, t.ownKey()} }

// turnOf returns the key of the turn that an answer names; none if only its question leads to it.
func turnOf(r *events.ToolCallResponse) []subjects.Key {
	callID, _, ok := events.ParseQuestionID(r.ToolCallID)
	if !ok {
		return nil
	}
	if _, qualified := events.Unqualified(callID); qualified {
		return nil
	}
	return []subjects.Key{subjects.TurnKey(r.App, r.Chat, r.Run, events.TurnOfCallID(callID, r.Run))}
}

// heldLater reports whether a later delivery of a message holds one of the turns that the message may
// be the lease of.
func (h *Handlers) heldLater(m *Message) (bool, error) {
	return h.holds(m, func(l idempotency.Lease) bool { return l.After(m.Lease) })
}

// isLease reports whether any delivery of a message holds one of the turns that the message may be the lease of.
func (h *Handlers) isLease(m *Message) (bool, error) {
	return h.holds(m, m.Lease.Same)
}

func (h *Handlers) holds(m *Message, is func(idempotency.Lease) bool) (bool, error) {
	if len(m.turns) == 0 {
		return false, nil
	}
	leases, err := h.Journal.Leases(m.Held, m.turns...)
	if err != nil {
		return false, fmt.Errorf("look which delivery holds the turn: %w", err)
	}
	return slices.ContainsFunc(leases, is), nil
}

// ackUnlessHeldLater acknowledges a message whose turn continues without it. It leaves one that a later
// delivery holds, or may hold.
func (h *Handlers) ackUnlessHeldLater(m *Message) Disposition {
	later, err := h.heldLater(m)
	switch {
	case mutant.Planted(mutant.AsideUnderLater):
	case err != nil:
		return h.undecided(m, "a later delivery may hold its turn", err)
	case later || !m.Fresh():
		h.Logger.Debug("another delivery may hold the message; it is left", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery)
		return leave()
	}
	return ack()
}
