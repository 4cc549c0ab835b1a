package idempotency

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A turn whose owner is gone is taken over in a fixed order, in which the creates decide (docs/journal.md#rule-4):
//
//  1. check whether the tool may be entered again at all; if not, the turn is ended without a takeover
//  2. end the epoch of the old owner by a park record with outcome sealed, so that it can no longer park the turn
//  3. create the takeover record of the next epoch: this message is its lease
//  4. read the turn again, at least up to the own takeover record, and decide by that read: the turn may have ended, or
//     been cancelled, in the meantime

// takeover continues a turn whose owner let its lease lapse: steps 1 and 2. It reports again = true if another message was
// first and the turn has to be read again.
func (j *Journal) takeover(ctx context.Context, c Claim, hold Hold, t *Turn) (d Decision, again bool, err error) {
	endTurn := func(code events.Code) (Decision, bool, error) {
		return Decision{Action: EndTurn, Hold: hold, Code: code, Turn: t}, false, nil
	}
	claimed := t.Claim.Meta
	hold.Effect = claimed.Effect
	switch {
	case claimed.Outcome != "":
		return endTurn(events.Code(claimed.Outcome)) // docs/journal.md#rule-1: not from the manifests of this worker
	case t.oversized:
		return endTurn(events.CodeTooLarge)
	case !reenterable(claimed.Effect), t.sealed() >= j.maxTakeovers:
		return endTurn(endOf(t)) // needs no takeover: the tool is not entered again
	}
	var known bool
	if hold.Effect, known = c.effectToday(t, claimed.Effect); !known {
		return Decision{Action: Requeue, Turn: t}, false, nil
	}
	if !reenterable(hold.Effect) {
		return endTurn(endOf(t))
	}
	park, err := j.endEpoch(ctx, hold, ParkSealed)
	if err != nil {
		return Decision{}, false, err
	}
	// The owner may have parked the turn before its epoch could be sealed. The turn stays parked in two cases:
	//   - this message is its lease. The run that has parked is about to acknowledge the message, or has died before it
	//     could: it must not become a lease again. The message of the answer is the next lease.
	//   - this message is a resume ([Journal.Resume]), and the read shows neither an answer for which the turn waits nor a
	//     cancel. One that is stored and was not read continues the turn by its own message, or a later sweep finds it.
	if park.Meta.Outcome == ParkParked && (t.Lease.Same(c.Lease) || !t.signalStored()) {
		return Decision{Action: Done, Turn: t}, false, nil
	}
	return j.beginEpoch(ctx, c, hold, t)
}

// beginEpoch makes the message the lease of the next epoch and decides, by a read after that, how the turn continues: steps 3
// and 4.
func (j *Journal) beginEpoch(ctx context.Context, c Claim, hold Hold, t *Turn) (d Decision, again bool, err error) {
	switch won, err := j.own(ctx, c, &hold); {
	case err != nil:
		return Decision{}, false, err
	case !won:
		return Decision{}, true, nil
	}
	before := t
	t, err = j.readSince(ctx, c.Key, hold.Token, before)
	switch {
	case errors.Is(err, ErrStale): // nothing is decided; the next delivery takes the turn over
		return Decision{Action: Leave, Turn: before}, false, nil
	case err != nil:
		return Decision{}, false, err
	}
	d = Decision{Action: EndTurn, Hold: hold, Turn: t}
	switch {
	case t.Response != nil: // the old owner has ended the turn meanwhile
		d = done(t.Response, t)
	case t.Claim == nil: // it has expired meanwhile
		d = Decision{Action: Leave, Turn: t}
	case t.corrupt:
		d.Code = events.CodeStateCorrupt
	case t.oversized:
		d.Code = events.CodeTooLarge
	case c.cancels(): // this message is a cancel, whether or not the read shows its record
		d.Code = events.CodeCancelled
	case t.Cancel != nil, !reenterable(hold.Effect): // unsafe: the manifests have changed while the turn was parked
		d.Code = endOf(t)
	case hold.Effect == string(events.EffectReplay) && !t.mayReplay(&t.Call, hold.Nonce):
		d.Code = endOf(t)
	default:
		d.Action = Run
	}
	return d, false, nil
}

// own creates the takeover record of the next epoch. It reports false if another message was first.
func (j *Journal) own(ctx context.Context, c Claim, hold *Hold) (bool, error) {
	next := hold.Epoch + 1
	meta := Meta{Nonce: hold.Nonce, Epoch: next, Lease: c.Lease, Pool: j.pool, Trace: c.Trace}
	seq, rival, err := j.create(ctx, Record{Key: c.Key.Private(events.RecordTakeover, strconv.Itoa(next)), Meta: meta}, hold.Claim)
	if err != nil || rival != nil {
		return false, err
	}
	hold.Epoch, hold.Token, hold.Lease = next, seq, c.Lease
	return true, nil
}

// endEpoch creates the park record of the epoch of hold and returns the stored one: the epoch ended in the given way, unless
// another record was first.
func (j *Journal) endEpoch(ctx context.Context, hold Hold, how string) (Record, error) {
	// A fresh nonce for each call: the same delivery may try to seal an epoch and to mark it as woken. By the nonce of the
	// delivery, create would take the first record for the second, and park would have the wrong outcome.
	park := Record{
		Key:  hold.Key.Private(events.RecordPark, strconv.Itoa(hold.Epoch)),
		Meta: Meta{Nonce: NewNonce(), Epoch: hold.Epoch, Outcome: how},
	}
	_, rival, err := j.create(ctx, park, hold.Claim)
	switch {
	case err != nil || rival == nil:
		return park, err
	case rival.Err != nil:
		park.Meta.Outcome = ParkSealed
		return park, nil //nolint:nilerr // unreadable: treated as sealed; the read after the takeover finds the turn corrupt
	}
	return *rival, nil
}

func reenterable(effect string) bool { return events.Effect(effect).Reenterable() }

// endOf is how a turn ends that is not run again.
func endOf(t *Turn) events.Code {
	if t.Cancel != nil {
		return events.CodeCancelled
	}
	return events.CodeInterrupted
}

// NewOwner is the worker for which a turn is taken over. A takeover runs the tool that the claim names, never the tool that
// the manifests bind to the message today. The journal therefore asks this worker about the claim before it stores
// anything.
type NewOwner interface {
	// Effect returns the effect that the claimed tool has for this worker today, "" if there is no such tool or its
	// effect is not known yet: then the effect of the claim stays. It reports false if the worker does not know the
	// workflow of the claim: another worker may, so the turn is not taken over here.
	Effect(key subjects.Key, claim *Record) (effect string, known bool)
}

// effectToday returns the effect under which the worker may continue a turn, given the effect that the turn has so far. It
// reports false if the worker does not know the workflow; any worker may end a turn that is cancelled.
func (c *Claim) effectToday(t *Turn, effect string) (today string, known bool) {
	if c.NewOwner == nil || c.cancels() || t.Cancel != nil {
		return effect, true
	}
	today, known = c.NewOwner.Effect(c.Key, t.Claim)
	return stricter(effect, today), known
}

// stricter returns the effect that allows less: a manifest that has changed since the claim may forbid another run of the
// tool, but never permit one.
func stricter(claimed, today string) string {
	return string(events.Effect(claimed).Stricter(events.Effect(today)))
}

// Stricter reports whether an effect allows less than the one under which the turn is held.
func (h *Hold) Stricter(effect string) bool { return stricter(h.Effect, effect) != h.Effect }

// sealed counts the epochs that a takeover has sealed since the last step of a program ended: a long program may have many
// owners, one step may not. An epoch that was woken or parked does not count, even if its owner died after that, so questions
// may continue a turn any number of times.
func (t *Turn) sealed() int {
	var since uint64
	for _, c := range t.calls {
		if c.Response != nil {
			since = max(since, c.Response.Seq)
		}
	}
	n := 0
	for _, r := range t.parks {
		if r.Meta.Outcome == ParkSealed && r.Seq > since {
			n++
		}
	}
	return n
}

// A tool with effect replay may be entered again while it waits for an answer: code before an open question may run twice,
// code after an answer may not. Three questions show the cases. A run has asked a and b at the same time, and the answer
// to a was taken, that is, passed to the tool:
//
//   - the run then asked c, which is open: the code after a has come as far as c. It may run again.
//   - the run then parked, and b is open: the code after a waits for b. It may run again.
//   - neither: the code after a may have done anything, since b was asked before a was answered. The turn ends as
//     interrupted, although b is open.

// mayReplay reports whether the tool of a call with effect replay may be entered by a run, given by its nonce.
func (t *Turn) mayReplay(c *Call, run string) bool {
	waits := false
	for _, q := range c.questions {
		switch {
		case q.Taken == nil:
			waits = waits || q.Ask != nil
		case t.passed(c, q.Taken, run):
			return false
		}
	}
	return waits
}

// passed reports whether the code after an answer must not run in a run (given by its nonce) because it may have run in the
// earlier run that has taken the answer. Another question that is open now makes it safe: the earlier run can have come no
// further than to that. A question whose answer the given run has taken counts as open, since no other run has the answer.
func (t *Turn) passed(c *Call, taken *Record, run string) bool {
	parked := slices.ContainsFunc(t.parks, func(p *Record) bool {
		return p.Meta.Outcome == ParkParked && p.Meta.Nonce == taken.Meta.Nonce && p.Seq > taken.Seq
	})
	for _, q := range c.questions {
		open := q.Ask != nil && (q.Taken == nil || q.Taken.Meta.Nonce == run)
		if open && (parked || q.Ask.Seq > taken.Seq) {
			return false
		}
	}
	return true
}
