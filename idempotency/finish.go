package idempotency

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A turn ends with the first response that is stored, whichever epoch its writer has. Later results are dropped.

// Finish stores the response of a turn. It returns true if the response is stored, and false if the turn already has another
// one: then the result is late and is dropped, and the message may be acknowledged. On any error the message must not be
// acknowledged; with [ErrDamaged] the stored response is unreadable.
func (j *Journal) Finish(ctx context.Context, h Hold, event []byte) (stored bool, err error) {
	_, rival, err := j.create(ctx, Record{Key: h.Key.Public(events.RecordResponse), Meta: h.meta(), Data: event}, h.Claim)
	if err == nil && rival != nil && rival.Err != nil {
		return false, fmt.Errorf("%w: %s", ErrDamaged, rival.Key)
	}
	return err == nil && rival == nil, err
}

// Delta stores the changes of context variables of a tool, before [Journal.Finish]. It returns the sequence that orders the
// change among the changes of the chat. The change counts if the response of the same run is stored.
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
	case delta.Meta.Nonce != end.Meta.Nonce: // a stale read of an earlier generation
		return Record{}, ErrNotFound
	}
	return delta, err
}

// How many ended turns a journal remembers, and for how long: far less than any retention, after which a turn with the same
// key is a new one.
const (
	maxFinished = 16_384
	finishedFor = 10 * time.Minute
)

// TurnRef identifies a turn and its data.
type TurnRef [sha256.Size]byte

// RefOf returns the reference of the turn with a key, in the form of subjects.Key.String, and the
// fingerprint of its data.
func RefOf(key string, fingerprint [sha256.Size]byte) TurnRef {
	const usual = 320 // a key has four tokens
	return sha256.Sum256(append(append(make([]byte, 0, usual), key...), fingerprint[:]...))
}

// Finished reports whether this process recently saw that a turn has ended, so that a late duplicate of its message costs the
// server nothing.
func (j *Journal) Finished(turn TurnRef, now time.Time) bool { return j.finished.Has(turn, now) }

// NoteFinished remembers for a while that a turn has ended, and reports whether that was known.
func (j *Journal) NoteFinished(turn TurnRef, now time.Time) (known bool) {
	return j.finished.Add(turn, now)
}
