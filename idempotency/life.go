package idempotency

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// The retention takes the records of a turn one by one, the claim first. Who claims the key after
// that begins a new turn, while others of the records may stand for days. They have lower sequences
// than its claim: they count for nothing, and a create of the new turn replaces them, by
// compare-and-set. A cancel alone may be older than the claim that it is about, and may be
// stored after the end: it names its claim. What cannot be read fails closed, however old it is.

// lifeOf returns the sequence from which on records belong to the turn of a claim. It is 0, so that
// all do, for a claim that is not known or cannot be read: such a one may have been damaged since.
func lifeOf(claim *Record) uint64 {
	if claim == nil || claim.Err != nil {
		return 0
	}
	return claim.Seq
}

// Former reports whether a record belongs to a life of its key before the one that began with the
// claim of a sequence; 0 stands for a claim that is not known. A cancel may be older than its claim.
func (r *Record) Former(claim uint64) bool {
	return r.Seq < claim && r.Err == nil
}

// has reports whether a record that was read, nil for none, belongs to the turn that is held.
func (h *Hold) has(r *Record) bool { return r != nil && !r.Former(h.Claim) }

// cancelAhead is how long before its claim a cancel may be stored that names no claim: the longest that
// an inbound message of the turn waits by default.
const cancelAhead = 24 * time.Hour

// cancels reports whether a cancel, nil for none, is about the turn with a claim, nil for one that is
// not known. It names the claim that stood when it was stored: order does not tell, because one that
// comes after the end of its turn outlives claim and response. One that names none was stored
// before the claim: it is not about this turn if the response of a former life came after it, or if it is
// older than any message of this turn.
func cancels(cancel, response, claim *Record) bool {
	life := lifeOf(claim)
	switch {
	case cancel == nil:
		return false
	case life == 0, cancel.Err != nil:
		return true
	case cancel.Meta.Claim != 0:
		return cancel.Meta.Claim == life
	case !cancel.Former(life):
		return true
	}
	return claim.Time.Sub(cancel.Time) <= cancelAhead &&
		(response == nil || !cancel.Former(response.Seq) || !response.Former(life))
}

// cancelsHeld is cancels for the turn that is held, whose claim is read only if it matters. The read
// is repeated until it has an answer or ctx ends.
func (j *Journal) cancelsHeld(ctx context.Context, cancel, response *Record, h *Hold) (bool, error) {
	if cancel == nil {
		return false, nil
	}
	claim := &Record{Seq: h.Claim}
	if cancel.Meta.Claim == 0 && cancel.Former(h.Claim) {
		err := j.insist(ctx, func() (err error) {
			*claim, err = j.store.At(ctx, h.Claim)
			return err
		})
		switch {
		case errors.Is(err, ErrNotFound): // damaged or expired since: the cancel stands
			return true, nil
		case err != nil:
			return false, err
		}
	}
	return cancels(cancel, response, claim), nil
}

// ofThisLife removes what is left of a former life from the records of a turn.
func ofThisLife(records []Record) []Record {
	at := slices.IndexFunc(records, isKind(events.RecordCall))
	if at < 0 || at == 0 && !slices.ContainsFunc(records, isKind(events.RecordCancel)) {
		return records
	}
	var response *Record
	if n := slices.IndexFunc(records, isKind(events.RecordResponse)); n >= 0 {
		response = &records[n]
	}
	call, isCancel := &records[at], isKind(events.RecordCancel)
	claim := lifeOf(call)
	life := make([]Record, 0, len(records))
	for _, r := range records {
		if isCancel(r) && cancels(&r, response, call) || !isCancel(r) && !r.Former(claim) {
			life = append(life, r)
		}
	}
	return life
}

func isKind(kind string) func(Record) bool {
	return func(r Record) bool {
		k, ok := subjects.ParseKey(r.Key)
		return ok && k.Kind == kind
	}
}

// last returns the record under a key, nil if there is none.
func (j *Journal) last(ctx context.Context, key string) (*Record, error) {
	r, err := j.store.Last(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, err
	}
	return &r, nil
}
