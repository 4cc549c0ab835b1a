package oneturntest

import (
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// The invariants of the owners of a turn: each begins an epoch, after the end of the one before.

// epochs follows a turn from owner to owner.
func (c *checker) epochs(t *turnFacts) {
	key := t.key
	var lease idempotency.Lease // of the owner so far
	epoch, cancelled := 1, false
	for i := range t.records {
		r := &t.records[i]
		k, _ := subjects.ParseKey(r.Key)
		switch {
		case k.Kind == events.KindCancel:
			cancelled = true
		case k.Kind == events.KindToolCall && k.Call == subjects.SingleCall:
			lease = r.Meta.Lease
			t.runs[1], t.began[1] = r.Meta.Nonce, r.Seq
		case k.Kind == events.RecordTakeover:
			epoch++
			if k.ID != strconv.Itoa(epoch) || r.Meta.Epoch != epoch {
				c.failf("I6", key, "takeover %s of epoch %d follows epoch %d", k.ID, r.Meta.Epoch, epoch-1)
			}
			c.handover(t, epoch, r, lease)
			t.began[epoch] = r.Seq
			entered := t.enteredBy(epoch)
			if cancelled && entered {
				c.failf("I2", key, "entered by epoch %d, which began after the cancel", epoch)
			}
			if response := t.own().response; entered && response != nil && response.Seq < r.Seq {
				c.failf("I2", key, "entered by epoch %d, which began after the response", epoch)
			}
			lease, t.runs[epoch] = r.Meta.Lease, r.Meta.Nonce
		}
	}
	c.tokens(t)
}

// enteredBy reports whether an epoch has entered a tool.
func (t *turnFacts) enteredBy(epoch int) bool {
	for _, f := range t.calls {
		if slices.ContainsFunc(f.ledger, func(e LedgerEntry) bool { return e.Phase == PhaseEnter && e.Epoch == epoch }) {
			return true
		}
	}
	return false
}

// handover compares the beginning of an epoch with the end and the lease of the previous one.
func (c *checker) handover(t *turnFacts, epoch int, r *idempotency.Record, lease idempotency.Lease) {
	ended, same := t.parks[epoch-1], r.Meta.Lease.Same(lease)
	how := ""
	if ended != nil && ended.Seq < r.Seq {
		how = ended.Meta.Outcome
	}
	if how == woken && r.Meta.Nonce == t.runs[epoch-1] && r.Meta.Lease == lease {
		return // its owner continues, and may be parked again
	}
	switch {
	case how == "":
		c.failf("I6", t.key, "taken over as epoch %d before the end of epoch %d", epoch, epoch-1)
	case same && how == parked:
		c.failf("I6", t.key, "epoch %d was parked, and taken over by its own message", epoch-1)
	case same && r.Meta.Lease.Delivery <= lease.Delivery:
		c.failf("I6", t.key, "delivery %d of its message took epoch %d from delivery %d", r.Meta.Lease.Delivery, epoch, lease.Delivery)
	}
	if how != parked && c.undisturbed(t) {
		c.failf("I7", t.key, "taken over as epoch %d without a fault", epoch)
	}
}

// tokens compares the fencing tokens that tools got with the records that began their epochs.
func (c *checker) tokens(t *turnFacts) {
	for _, f := range t.calls {
		for _, e := range f.ledger {
			if began, ok := t.began[e.Epoch]; ok && e.Phase == PhaseEnter && e.Token != began {
				c.failf("I6", f.name, "epoch %d entered the tool with fencing token %d, its record is %d", e.Epoch, e.Token, began)
			}
		}
	}
}
