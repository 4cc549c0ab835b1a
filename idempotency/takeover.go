package idempotency

import (
	"context"
	"errors"
	"strconv"

	"github.com/oneturn/oneturn/events"
)

// takeover continues a turn whose owner let its lease lapse. The order of the steps is the
// rule: the seal comes first, so that the old owner cannot park behind our back, and the
// decision is made on a read after the takeover record is stored. It reports again = true
// when somebody else moved first and the turn has to be looked at once more.
func (j *Journal) takeover(ctx context.Context, c Claim, hold Hold, t *Turn) (d Decision, again bool, err error) {
	conclude := func(code events.Code) (Decision, bool, error) {
		return Decision{Action: Conclude, Hold: hold, Code: code, Turn: t}, false, nil
	}
	claim := t.Claim.Meta
	hold.Effect = claim.Effect
	switch {
	case claim.Verdict != "":
		return conclude(events.Code(claim.Verdict)) // from the stored verdict, not from our manifests
	case t.crowded:
		return conclude(events.CodeTooLarge)
	case !reenterable(claim.Effect), t.sealed() >= j.maxTakeovers:
		return conclude(endOf(t)) // needs no takeover: the tool is not entered again
	case !c.ableTo(t, &hold):
		return Decision{Action: GiveBack, Turn: t}, false, nil
	case !reenterable(hold.Effect):
		return conclude(endOf(t))
	}
	park, err := j.seal(ctx, hold, ParkSealed)
	if err != nil {
		return Decision{}, false, err
	}
	// A message whose own run has parked the turn has brought what it had to bring, and the
	// acknowledgement of that delivery may be on its way: it cannot be a lease again.
	if park.Meta.Verdict == ParkParked && (t.Lease.Same(c.Lease) || !t.called()) {
		return Decision{Action: Done, Turn: t}, false, nil
	}
	return j.enter(ctx, c, hold, t)
}

// enter makes the message the lease of the next epoch and decides, on a read of after that,
// how the turn goes on.
func (j *Journal) enter(ctx context.Context, c Claim, hold Hold, t *Turn) (d Decision, again bool, err error) {
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
	d = Decision{Action: Conclude, Hold: hold, Turn: t}
	switch {
	case t.Response != nil:
		d = done(t.Response, t)
	case t.Claim == nil:
		d = Decision{Action: Leave, Turn: t}
	case t.corrupt:
		d.Code = events.CodeStateCorrupt
	case t.crowded:
		d.Code = events.CodeTooLarge
	case c.cancels():
		d.Code = events.CodeCancelled
	case t.Cancel != nil, !reenterable(hold.Effect), hold.Effect == string(events.EffectReplay) && !t.replays(hold.Nonce):
		d.Code = endOf(t)
	default:
		d.Action = Run
	}
	return d, false, nil
}

// own creates the takeover record of the next epoch. It reports false when a rival was first.
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

// seal creates the park record of the epoch that hold has seen and returns the one that is
// there: it ended the given way if we were first, else the way of whoever was.
func (j *Journal) seal(ctx context.Context, hold Hold, how string) (Record, error) {
	// A nonce of its own: a record that the same delivery sealed before must not pass for woken.
	park := Record{
		Key:  hold.Key.Private(events.RecordPark, strconv.Itoa(hold.Epoch)),
		Meta: Meta{Nonce: NewNonce(), Epoch: hold.Epoch, Verdict: how},
	}
	_, rival, err := j.create(ctx, park, hold.Claim)
	switch {
	case err != nil || rival == nil:
		return park, err
	case rival.Err != nil:
		park.Meta.Verdict = ParkSealed
		return park, nil //nolint:nilerr // unreadable: go on, the takeover record decides
	}
	return *rival, nil
}

// cancels reports whether the message itself is the wish that the turn end.
func (c *Claim) cancels() bool { return c.Signal && c.question == "" }

// Cancel stores the wish that a turn end. The record comes before any claim of the canceller,
// so whoever runs or takes over the turn finds it. Nothing is stored for a turn that has ended and
// has no open questions.
func (j *Journal) Cancel(ctx context.Context, c Claim, event []byte) error {
	t, err := j.Load(ctx, c.Key)
	if err != nil || t.Cancel != nil || t.Claim != nil && t.Response != nil && !t.asks() {
		return err
	}
	life := lifeOf(t.Claim)
	meta := Meta{Nonce: NewNonce(), Epoch: 1, Lease: c.Lease, Claim: life, Trace: c.Trace}
	cancel := Record{Key: c.Key.Public(events.RecordCancel), Meta: meta, Data: event}
	_, rival, err := j.create(ctx, cancel, life)
	if err == nil && rival != nil && !cancels(rival, t.Response, t.Claim) { // of a former life, and stored after this claim
		cancel.Seq = rival.Seq
		_, _, err = j.create(ctx, cancel, life)
	}
	return err
}

// Cancelled reports whether somebody has asked for the end of the turn.
func (j *Journal) Cancelled(ctx context.Context, hold Hold) (bool, error) {
	cancel, err := j.last(ctx, hold.Key.Public(events.RecordCancel))
	if err != nil || cancel == nil {
		return false, err
	}
	response, err := j.last(ctx, hold.Key.Public(events.RecordResponse))
	if err != nil {
		return false, err
	}
	return j.cancelsHeld(ctx, cancel, response, &hold)
}

func reenterable(effect string) bool { return events.Effect(effect).Reenterable() }

// endOf is how a turn ends that nobody runs on.
func endOf(t *Turn) events.Code {
	if t.Cancel != nil {
		return events.CodeCancelled
	}
	return events.CodeInterrupted
}
