package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
)

// The overlay of package mutants adds this file; released binaries do not have it.

// claimWrongly claims a turn in one of the wrong ways. It reports whether one is planted.
func (j *Journal) claimWrongly(ctx context.Context, c Claim, call Record) (Decision, bool) {
	d := Decision{Action: Run, Hold: Hold{Key: c.Key, Nonce: call.Meta.Nonce, Epoch: 1, Trace: c.Trace, Effect: c.Effect}}
	if c.RejectCode != "" {
		if !planted("reject_other_key") {
			return Decision{}, false
		}
		call.Key = c.Key.Public(events.RecordCall, "rejected")
		d.Action, d.Code = EndTurn, events.Code(c.RejectCode)
	}
	switch {
	case planted("mark_after_run"):
		return d, true // finishWrongly writes the claim
	case planted("read_decides"):
		if _, err := j.store.Last(ctx, call.Key); !errors.Is(err, ErrNotFound) {
			return Decision{}, false
		}
	case !planted("no_intent") && c.RejectCode == "":
		return Decision{}, false
	}
	d.Hold.Token, _, _ = j.create(ctx, call, 0)
	d.Hold.Claim = d.Hold.Token
	return d, true
}

// sendResponse sends the response of a step once, and continues whether it is stored or not.
func (j *Journal) sendResponse(ctx context.Context, h Hold, event []byte) Record {
	r := Record{Key: h.Key.Public(events.RecordResponse), Meta: h.meta(), Data: event}
	r.Seq, _ = j.store.Create(ctx, r)
	return r
}

// finishWrongly does what only a wrong finish does.
func (j *Journal) finishWrongly(ctx context.Context, h Hold, event []byte) {
	r := Record{Key: h.Key.Public(events.RecordResponse), Meta: h.meta(), Data: event}
	switch {
	case planted("mark_after_run"):
		r.Key, r.Meta.Effect = h.Key.Public(events.RecordCall), h.Effect
	case planted("unfenced_terminal"):
		if _, err := j.store.Last(ctx, r.Key); err != nil {
			return
		}
		r.Key = h.Key.Public(events.RecordResponse, h.Nonce)
	default:
		return
	}
	_, _, _ = j.create(ctx, r, h.Claim) //nolint:dogsled // a wrong finish does not look
}
