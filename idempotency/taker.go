package idempotency

import (
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Taker is the worker on whose behalf a turn is taken over. A takeover runs what the claim names,
// never what the manifests of the worker bind to the message today, so the journal asks what this
// worker makes of the claim before it stores anything.
type Taker interface {
	// Effect returns the effect that the tool named by a claim has for this worker today, "" if
	// it has no such tool, or has not learned the effect yet: then that of the claim stays. It reports false if the worker does not know the workflow of the
	// claim: another worker may, so the turn is not taken over here.
	Effect(key subjects.Key, claim *Record) (effect string, known bool)
}

// ableTo reports whether the worker that asks may take a turn over, and puts into hold the effect
// under which the turn continues. A turn that only has to be ended needs no particular worker.
func (c *Claim) ableTo(t *Turn, hold *Hold) bool {
	if c.Taker == nil || c.cancels() || t.Cancel != nil || t.Claim == nil || t.Claim.Err != nil {
		return true
	}
	today, known := c.Taker.Effect(c.Key, t.Claim)
	if known {
		hold.Effect = stricter(t.Claim.Meta.Effect, today)
	}
	return known
}

// stricter returns the effect that allows less: a manifest that has changed since the claim may
// forbid another run of the tool, and never permit one.
func stricter(claimed, today string) string {
	return string(events.Effect(claimed).Stricter(events.Effect(today)))
}

// Stricter reports whether an effect allows less than the one under which the turn is held.
func (h *Hold) Stricter(effect string) bool { return stricter(h.Effect, effect) != h.Effect }
