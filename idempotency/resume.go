package idempotency

import (
	"context"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Resume is a claim for a turn that somebody else has claimed and that may have nobody any
// more: its message is gone from the stream, so that no redelivery will end it (design 5.16).
type Resume struct {
	Key   subjects.Key
	Lease Lease // the message that asks; it is the lease if the turn is taken over
	// Origins are the deliveries of which the message is a copy. A turn that a later delivery of one of
	// those messages holds lost its lease to a late acknowledgement, and its owner may live: it is left
	// to the sweep.
	Origins []Lease
	Trace   string
	Taker   Taker // see [Claim]

	// Held reports whether the message of a lease is still in its stream, as the stream's
	// leader knows it: then it will be delivered again, and there is nothing to repair.
	Held func(ctx context.Context, l Lease) (bool, error)
	// Expired reports whether a turn claimed at the given time is past its life; by the
	// server's clock. Such a turn ends, whoever holds it. Nil means never.
	Expired func(claimed time.Time) bool
}

// Resume decides what becomes of a turn whose message is gone. It does nothing for one that
// has ended, is parked or is still held. Otherwise it does what a redelivery would do: the
// same seal, the same takeover record, so that of a resume and a late delivery of the turn's
// own message one wins.
func (j *Journal) Resume(ctx context.Context, r Resume) (Decision, error) {
	c := Claim{Key: r.Key, Lease: r.Lease, Trace: r.Trace, Taker: r.Taker}
	hold := Hold{Key: r.Key, Nonce: NewNonce(), Trace: r.Trace}
	for {
		t, err := Load(ctx, j.store, r.Key)
		if err != nil {
			return Decision{}, err
		}
		hold.Epoch, hold.Claim = t.Epoch, lifeOf(t.Claim)
		switch {
		case t.Response != nil, t.Claim == nil: // nothing to end; if the read was stale, the next sweep asks again
			return Decision{Action: Done, Turn: t, End: t.Response}, nil
		case t.corrupt:
			return Decision{Action: Conclude, Hold: hold, Code: events.CodeStateCorrupt, Turn: t}, nil
		}
		claim := t.Claim.Meta
		hold.Effect, hold.Fingerprint = claim.Effect, claim.Fingerprint
		if hold.Trace == "" {
			c.Trace, hold.Trace = claim.Trace, claim.Trace
		}
		switch {
		case claim.Verdict == "" && r.Expired != nil && r.Expired(t.Claim.Time):
			return Decision{Action: Conclude, Hold: hold, Code: events.CodeExpired, Turn: t}, nil
		case t.Lease.Same(r.Lease) && t.Lease.Delivery >= r.Lease.Delivery:
			return Decision{Action: Leave, Turn: t}, nil
		case slices.ContainsFunc(r.Origins, t.Lease.After):
			return Decision{Action: Done, Turn: t}, nil
		case !t.Lease.Same(r.Lease):
			idle, err := j.idle(ctx, r, t)
			if err != nil {
				return Decision{}, err
			}
			if !idle {
				return Decision{Action: Done, Turn: t}, nil
			}
		}
		d, again, err := j.takeover(ctx, c, hold, t)
		if !again {
			return d, err
		}
	}
}

// idle reports whether nobody will end a turn unasked.
func (j *Journal) idle(ctx context.Context, r Resume, t *Turn) (bool, error) {
	if t.Parked() {
		return false, nil
	}
	held, err := r.Held(ctx, t.Lease)
	return !held, err
}

// Parked reports whether the owner of the newest epoch has let the turn go until an answer
// comes, and none has come. A parked turn whose answer or cancel is stored is as good as lost
// if the message that brought it vanished, and is not called parked.
func (t *Turn) Parked() bool {
	park := t.newestPark()
	return park != nil && park.Meta.Verdict == ParkParked && !t.called()
}

// Corrupt reports whether a record of the turn cannot be read: such a turn is never run.
func (t *Turn) Corrupt() bool { return t.corrupt }

// Crowded reports whether the turn has more records than one read returns, and Records only those that
// are needed to end it. Such a turn is never run: it ends as too_large.
func (t *Turn) Crowded() bool { return t.crowded }
