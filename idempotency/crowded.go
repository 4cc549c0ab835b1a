package idempotency

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A call with more records than one read returns can still be ended. It is never run again: its
// questions and steps are not known.

// LoadEnds reads of a call, from the leader, whether and how it ends: its claim, its response and a
// cancel, nothing else.
func LoadEnds(ctx context.Context, s Store, key subjects.Key) (*Turn, error) {
	found, err := s.LastOf(ctx, []string{key.Public(events.RecordCall), key.Public(events.RecordResponse), key.Public(events.RecordCancel)})
	if err != nil {
		return nil, err
	}
	return newTurn(key, inOrder(nil, found)), nil
}

// TurnOf returns the turn of records that were read by their names. Their data do not matter.
func TurnOf(key subjects.Key, records []*Record) *Turn { return newTurn(key, inOrder(nil, records)) }

// Has reports whether a public record of the call belongs to this life of its key.
func (t *Turn) Has(r *Record) bool {
	if isKind(events.RecordCancel)(*r) {
		return t.Cancel != nil && t.Cancel.Seq == r.Seq
	}
	return !r.Former(lifeOf(t.Claim))
}

// inOrder appends the records that were found, and sorts all by their sequences.
func inOrder(records []Record, found []*Record) []Record {
	for _, r := range found {
		if r != nil {
			records = append(records, *r)
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return records
}

// loadNamed reads of a call what decides who holds it and whether it has ended: the records whose
// names are known, and the newest takeover.
func loadNamed(ctx context.Context, s Store, key subjects.Key) (*Turn, error) {
	takeover, err := s.Last(ctx, key.Private(events.RecordTakeover, AnyToken))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	epoch := 1
	var records []Record
	if err == nil {
		name, _ := subjects.ParseKey(takeover.Key)
		if n, errID := strconv.Atoi(name.ID); errID == nil {
			epoch = n
		}
		records = append(records, takeover)
	}
	found, err := s.LastOf(ctx, []string{
		key.Public(events.RecordCall), key.Public(events.RecordResponse), key.Public(events.RecordCancel), key.Private(events.RecordPark, strconv.Itoa(epoch)),
	})
	if err != nil {
		return nil, err
	}
	t := newTurn(key, inOrder(records, found))
	t.crowded = true
	return t, nil
}
