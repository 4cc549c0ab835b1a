package idempotency

import (
	"context"
	"maps"
	"slices"
)

// signal brings what was stored, an answer, an expiry or a cancel, to whoever holds the turn
// now. T is a read from after it was stored: an owner that is newer than t has read it by
// itself. The park record of the newest epoch decides between an owner that waits in memory
// and one that has let the turn go.
func (j *Journal) signal(ctx context.Context, c Claim, hold Hold, t *Turn) (d Decision, again bool, err error) {
	if c.mute {
		return Decision{Action: Done, Turn: t}, false, nil
	}
	if c.cancels() {
		if t.Cancel == nil { // the one that was stored belongs to a former life, or the read is stale: it is stored again
			return Decision{Action: Leave, Turn: t}, false, nil
		}
		if err := j.closeQuestions(ctx, &c, t); err != nil {
			return Decision{}, false, err
		}
	}
	for {
		park, err := j.woken(ctx, hold, t)
		switch {
		case err != nil:
			return Decision{}, false, err
		case park.Meta.Verdict == ParkWoken:
			return Decision{Action: Signalled, Turn: t}, false, nil
		case park.Meta.Verdict == ParkParked && !c.cancels() && !waits(&park, c.question):
			return Decision{Action: Done, Turn: t}, false, nil // repeated: the run that parked had it
		case park.Meta.Verdict == ParkParked && !c.ableTo(t, &hold):
			return Decision{Action: GiveBack, Turn: t}, false, nil
		case park.Meta.Verdict == ParkParked:
			return j.enter(ctx, c, hold, t)
		}
		hold.Epoch++ // sealed: somebody takes the turn over, and will find the word at the next epoch
	}
}

// woken returns the park record of the epoch that hold has seen: what t has read of it stays so,
// else it is created as woken.
func (j *Journal) woken(ctx context.Context, hold Hold, t *Turn) (Record, error) {
	if park := t.newestPark(); park != nil && park.Err == nil && hold.Epoch == t.Epoch {
		return *park, nil
	}
	return j.seal(ctx, hold, ParkWoken)
}

// closeQuestions decides all open questions of a turn that somebody has cancelled.
func (j *Journal) closeQuestions(ctx context.Context, c *Claim, t *Turn) error {
	for _, id := range slices.Sorted(maps.Keys(t.questions)) {
		q := t.questions[id]
		if q.ask == nil || q.ack != nil {
			continue
		}
		answer := Record{Meta: Meta{Nonce: NewNonce(), Epoch: 1, Lease: c.Lease, Verdict: string(Cancelled), Trace: c.Trace}}
		if q.answer != nil {
			answer = *q.answer
		}
		if _, _, err := j.settle(ctx, c, t, id, answer); err != nil {
			return err
		}
	}
	return nil
}
