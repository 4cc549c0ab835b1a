package handlers

import (
	"fmt"
	"slices"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/subjects"
)

// An acknowledgement of any delivery removes the message from the stream, also one that a later
// delivery holds as the lease of a turn that runs. So whoever acknowledges a message although its turn
// has not ended looks first whether a later delivery has claimed the turn or taken it over. A flood of new messages
// costs no look, see [Handlers.onlyDelivery].

// keys are the keys under which a turn may have been claimed: its workflow may have run reused keys when it was.
func (t *turn) keys() []subjects.Key { return []subjects.Key{t.Key, t.ownKey()} }

// leases returns under which deliveries the turns are held that a message may be the lease of.
func (h *Handlers) leases(m *message) ([]idempotency.Lease, error) {
	if len(m.turns) == 0 {
		return nil, nil
	}
	leases, err := h.Journal.Leases(m.Held, m.turns...)
	if err != nil {
		return nil, fmt.Errorf("look which delivery holds the turn: %w", err)
	}
	return leases, nil
}

// onlyDelivery reports whether a message has been delivered once and cannot have been delivered again by now. The server
// does that when an ack wait is over, and a new leader of the consumer, or a server that has started again, counts it
// from when the stream took the message, unless there was a heartbeat. So one that has waited in the stream may have
// been delivered again however fresh this delivery is. An ack wait that an operator lowers by hand can be known too late.
func (h *Handlers) onlyDelivery(m *message) bool {
	return m.Lease.Delivery == 1 && m.Fresh() && m.AckWait != nil && h.serverNow(m).Sub(m.Arrived) < m.AckWait()/2
}

// keepInProgress sends the first heartbeat of a message that has waited in the stream, once it is the lease of a turn whose tool
// may not be entered again: until then a new leader of the consumer redelivers the message immediately, and the worker that
// gets it ends the turn as interrupted. Turns of other tools run again then. Now is the time by the server's clock.
func keepInProgress(m *message, effect string, now time.Time) {
	if effect != string(bindings.EffectUnsafe) && effect != string(bindings.EffectReplay) || m.Refresh == nil || m.AckWait == nil {
		return
	}
	if now.Sub(m.Arrived) > m.AckWait()/3 {
		m.Refresh()
	}
}

// ackUnlessHeldLater acknowledges a message whose turn continues without it. It leaves one that a later
// delivery holds, or may hold.
func (h *Handlers) ackUnlessHeldLater(m *message) inbound.Disposition {
	if h.onlyDelivery(m) {
		return inbound.Acked()
	}
	leases, err := h.leases(m)
	return h.ackUnlessLater(m, leases, err)
}

// ackUnlessLater is [Handlers.ackUnlessHeldLater] with the leases, or why they are not known.
func (h *Handlers) ackUnlessLater(m *message, leases []idempotency.Lease, err error) inbound.Disposition {
	later := slices.ContainsFunc(leases, func(l idempotency.Lease) bool { return l.After(m.Lease) })
	switch {
	case err != nil:
		return h.undecided(m, "a later delivery may hold its turn", err)
	case later || !m.Fresh():
		h.Logger.Debug("another delivery may hold the message; it is left", "seq", m.Lease.Seq, "delivery", m.Lease.Delivery)
		return inbound.Left()
	}
	return inbound.Acked()
}

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
