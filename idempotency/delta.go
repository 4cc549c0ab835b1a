package idempotency

import (
	"context"
	"errors"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// Delta stores what a tool changed in its context variables, before the finish. It returns
// the sequence that orders the change among those of the chat. The change counts if the response
// of the same run is stored.
func (j *Journal) Delta(ctx context.Context, h Hold, data []byte) (uint64, error) {
	seq, rival, err := j.create(ctx, Record{Key: h.Key.Private(events.RecordDelta, strconv.Itoa(h.Epoch)), Meta: h.meta(), Data: data}, h.Claim)
	if err == nil && rival != nil {
		return 0, errors.New("journal: another run of this epoch has stored its context changes")
	}
	return seq, err
}

// DeltaOf returns the delta of the run that has stored a response, as the leader knows it, or
// [ErrNotFound]. It fails with [ErrDamaged] for one that cannot be read.
func (j *Journal) DeltaOf(ctx context.Context, end *Record) (Record, error) {
	k, ok := subjects.ParseKey(end.Key)
	if !ok || end.Err != nil {
		return Record{}, ErrNotFound
	}
	delta, err := j.store.Last(ctx, k.Key.Private(events.RecordDelta, strconv.Itoa(end.Meta.Epoch)))
	switch {
	case err != nil:
		return Record{}, err
	case delta.Err != nil:
		return Record{}, ErrDamaged
	case delta.Meta.Nonce != end.Meta.Nonce: // a stale read of a former life
		return Record{}, ErrNotFound
	}
	return delta, err
}

// End returns the response of a turn, as the leader knows it, or [ErrNotFound].
func (j *Journal) End(ctx context.Context, key subjects.Key) (Record, error) {
	return j.store.Last(ctx, key.Public(events.RecordResponse))
}

// At returns the record with a sequence, as the leader knows it, or [ErrNotFound].
func (j *Journal) At(ctx context.Context, seq uint64) (Record, error) { return j.store.At(ctx, seq) }
