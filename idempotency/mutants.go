package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/mutant"
)

// What is in this file is not in a released binary: see package mutant.

// mutantClaim claims a turn in one of the wrong ways. It reports whether one is planted.
func (j *Journal) mutantClaim(ctx context.Context, c Claim, call Record) (Decision, bool) {
	d := Decision{Action: Run, Hold: Hold{Key: c.Key, Nonce: call.Meta.Nonce, Epoch: 1, Trace: c.Trace, Effect: c.Effect}}
	if c.Verdict != "" {
		if !mutant.Planted(mutant.RejectOtherKey) {
			return Decision{}, false
		}
		call.Key = c.Key.Public(kindCall, "rejected")
		d.Action, d.Code = Conclude, events.Code(c.Verdict)
	}
	switch {
	case mutant.Planted(mutant.MarkAfterRun):
		return d, true // mutantFinish writes the claim
	case mutant.Planted(mutant.ReadDecides):
		if _, err := j.store.Last(ctx, call.Key); !errors.Is(err, ErrNotFound) {
			return Decision{}, false
		}
	case !mutant.Planted(mutant.NoIntent) && c.Verdict == "":
		return Decision{}, false
	}
	d.Hold.Token, _, _ = j.create(ctx, call, 0)
	d.Hold.Claim = d.Hold.Token
	return d, true
}

// mutantFinish does what only a wrong finish does.
func (j *Journal) mutantFinish(ctx context.Context, h Hold, event []byte) {
	r := Record{Key: h.Key.Public(kindResponse), Meta: h.meta(), Data: event}
	switch {
	case mutant.Planted(mutant.MarkAfterRun):
		r.Key, r.Meta.Effect = h.Key.Public(kindCall), h.Effect
	case mutant.Planted(mutant.UnfencedTerminal):
		if _, err := j.store.Last(ctx, r.Key); err != nil {
			return
		}
		r.Key = h.Key.Public(kindResponse, h.Nonce)
	default:
		return
	}
	_, _, _ = j.create(ctx, r, h.Claim) //nolint:dogsled // a wrong finish does not look
}
