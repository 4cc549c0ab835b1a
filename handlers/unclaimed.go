package handlers

import (
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
)

// The outcome of a turn that no worker could claim.

// givenUp makes a dead letter of the message of a turn that no worker could even reject. One that was
// claimed is ended by the worker that gets it.
func (h *Handlers) givenUp(t *turn) (inbound.Disposition, bool) {
	claimed, err := h.claimedBefore(t)
	switch {
	case err != nil:
		return h.unclaimed(t, err), true
	case claimed:
		return inbound.Disposition{}, false
	}
	return h.deadUnclaimed(t, fmt.Errorf("delivered %d times, and no worker could claim it", t.m.Lease.Delivery)), true
}

// deadUnclaimed makes a dead letter of the message of a turn that no worker has claimed. A later delivery may claim it
// meanwhile: then the message is left to that one.
func (h *Handlers) deadUnclaimed(t *turn, cause error) inbound.Disposition {
	t.m.turns = t.keys()
	if d := h.dead(t.m, deadletter.ReasonUndeliverable, cause); d.Do != inbound.Ack {
		return d
	}
	return h.ackUnlessHeldLater(t.m)
}

// claimedBefore reports whether a worker has claimed the turn: one that was is ended whatever the
// workflow says. Only a redelivered one may have been, and the journal knows. A worker that claims
// it after this look, late, ends it itself; if it dies, the sweep finds the turn.
func (h *Handlers) claimedBefore(t *turn) (bool, error) {
	if t.m.offers() == 1 {
		return false, nil
	}
	claims, err := h.Journal.Claims(t.m.Held, t.keys()...)
	if err != nil {
		return false, fmt.Errorf("look whether the turn was claimed: %w", err)
	}
	return slices.ContainsFunc(claims, func(c *idempotency.Record) bool { return c != nil && t.mayBe(c) }), nil
}

// mayBe reports whether a claim is of the data of t, or does not tell.
func (t *turn) mayBe(claim *idempotency.Record) bool {
	return claim.Err != nil || claim.Meta.Fingerprint == "" || claim.Meta.Fingerprint == t.hash
}
