package idempotency

import (
	"context"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Resume is the request of a sweep to continue a turn whose message may be gone from the stream, so that no redelivery would
// end it (docs/journal.md#rule-16).
type Resume struct {
	Key   subjects.Key
	Lease Lease // the message of the resume; becomes the lease if the turn is taken over
	// Origins are the deliveries of which the message is a copy. If the turn's lease is a later delivery of one of those
	// messages, it was lost to a late acknowledgement and its owner may be running: the turn is left to the next sweep.
	Origins  []Lease
	Trace    string
	NewOwner NewOwner // see [Claim]

	// Held reports whether the message of a lease is still in its stream, as the leader of the stream knows it: then it
	// will be redelivered, and there is nothing to resume.
	Held func(ctx context.Context, l Lease) (bool, error)
	// Expired reports whether a turn claimed at the given time is past its longest life, by the clock of the server.
	// Such a turn is ended, whatever its owner does. Nil means never.
	Expired func(claimed time.Time) bool
}

// Resume takes over a turn whose message is gone. It does nothing for a turn that has ended, is parked or is still held.
// Otherwise it does what a redelivery does, with the same park and takeover records: if the turn's own message is
// delivered as well, only one of the two takes the turn over.
func (j *Journal) Resume(ctx context.Context, r Resume) (Decision, error) {
	c := Claim{Key: r.Key, Lease: r.Lease, Trace: r.Trace, NewOwner: r.NewOwner}
	hold := Hold{Key: r.Key, Nonce: NewNonce(), Trace: r.Trace}
	for {
		t, err := Load(ctx, j.store, r.Key)
		if err != nil {
			return Decision{}, err
		}
		hold.Epoch, hold.Claim = t.Epoch, generationOf(t.Claim)
		switch {
		case t.Response != nil, t.Claim == nil: // nothing to end; if the read was stale, the next sweep resumes it
			return Decision{Action: Done, Turn: t, End: t.Response}, nil
		case t.corrupt:
			return Decision{Action: EndTurn, Hold: hold, Code: events.CodeStateCorrupt, Turn: t}, nil
		}
		claimed := t.Claim.Meta
		hold.Effect, hold.Fingerprint = claimed.Effect, claimed.Fingerprint
		if hold.Trace == "" {
			c.Trace, hold.Trace = claimed.Trace, claimed.Trace
		}
		switch {
		case claimed.Outcome == "" && r.Expired != nil && r.Expired(t.Claim.Time):
			return Decision{Action: EndTurn, Hold: hold, Code: events.CodeExpired, Turn: t}, nil
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

// idle reports whether no message is left that would end the turn.
func (j *Journal) idle(ctx context.Context, r Resume, t *Turn) (bool, error) {
	if t.Parked() {
		return false, nil
	}
	held, err := r.Held(ctx, t.Lease)
	return !held, err
}
