package idempotency

import (
	"context"
	"errors"
	"slices"

	"github.com/oneturn/oneturn/internal/mutant"
	"github.com/oneturn/oneturn/subjects"
)

// The retention takes the records of a turn one by one, the claim first. Who claims the key after
// that begins a new turn, while others of the records may stand for days. They have lower sequences
// than its claim: they count for nothing, and a create of the new turn replaces them, by
// compare-and-set. A cancel alone may be older than the claim that it is about. What cannot be read
// fails closed, however old it is.

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
	return r.Seq < claim && r.Err == nil && !mutant.Planted(mutant.FormerLifeStands)
}

// has reports whether a record that was read, nil for none, belongs to the turn that is held.
func (h *Hold) has(r *Record) bool { return r != nil && !r.Former(h.Claim) }

// cancels reports whether a cancel, nil for none, is about the turn with a claim. One that is older
// is not if the response of a former life is there, and came after it.
func cancels(cancel, response *Record, claim uint64) bool {
	return cancel != nil && (response == nil || !cancel.Former(response.Seq) || !response.Former(claim))
}

// ofThisLife removes what is left of a former life from the records of a turn.
func ofThisLife(records []Record) []Record {
	at := slices.IndexFunc(records, isKind(kindCall))
	if at <= 0 {
		return records
	}
	var response *Record
	if n := slices.IndexFunc(records, isKind(kindResponse)); n >= 0 {
		response = &records[n]
	}
	claim, isCancel := lifeOf(&records[at]), isKind(kindCancel)
	life := make([]Record, 0, len(records))
	for _, r := range records {
		if !r.Former(claim) || isCancel(r) && cancels(&r, response, claim) {
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
