package idempotency

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// A turn ends with the first response that is stored, whichever epoch its writer has (docs/journal.md#rule-6). Later results
// are dropped. A tool that has changed context variables stores the changes first, as the delta of its epoch; they count if
// the response of the same run is stored. After the response, the answers to secret questions are erased.

// Finish stores the response of a turn. It returns true if the response is stored, and false if the turn already has another
// one: then the result is late and is dropped, and the message may be acknowledged. On [ErrDamaged] the stored response is
// unreadable and stays: the message becomes a dead letter (docs/journal.md#rule-10). On [ErrRefused] this response can never be
// stored, another one can. On any other error the message must not be acknowledged.
func (j *Journal) Finish(ctx context.Context, h Hold, event []byte) (stored bool, err error) {
	_, rival, err := j.create(ctx, Record{Key: h.Key.Public(events.RecordResponse), Meta: h.meta(), Data: event}, h.Claim)
	if err == nil && rival != nil && rival.Err != nil {
		return false, fmt.Errorf("%w: %s", ErrDamaged, rival.Key)
	}
	return err == nil && rival == nil, err
}

// Delta stores the changes of context variables of a tool, before [Journal.Finish]. It returns the sequence of the record: of
// two changes of a variable that count, the one with the higher sequence wins, in whichever order they are merged. An epoch
// has one run, so a record that is not of this run is damaged or was written by something else. Delta fails then: the run must
// not finish without its changes.
func (j *Journal) Delta(ctx context.Context, h Hold, data []byte) (uint64, error) {
	seq, rival, err := j.create(ctx, Record{Key: h.Key.Private(events.RecordDelta, strconv.Itoa(h.Epoch)), Meta: h.meta(), Data: data}, h.Claim)
	if err == nil && rival != nil {
		return 0, fmt.Errorf("journal: %s is stored already, and not by this run: the record is damaged", rival.Key)
	}
	return seq, err
}

// DeltaOf returns the context changes that count with a response: the delta that the same run has stored before it, as the
// leader knows it, or [ErrNotFound]. It fails with [ErrDamaged] for one that cannot be read.
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

// Secret reports whether the turn holds sealed data that [Journal.Erase] has to erase once the
// turn has ended.
func (t *Turn) Secret() bool {
	for i := range t.Records {
		if t.Records[i].Meta.Secret == Sealed {
			return true
		}
	}
	return false
}

// Erase overwrites the sealed answers and step results of a turn that has ended, and returns how many there were. The records
// remain: an answer that is sent again is still recognised. It does nothing for a turn without a response, because another
// run may need the data. It may be repeated at any time.
func (j *Journal) Erase(ctx context.Context, key subjects.Key) (int, error) {
	return Erase(ctx, j.store, key)
}

// Erase is [Journal.Erase] for a caller that has a store and no journal, such as a sweep.
func Erase(ctx context.Context, s Store, key subjects.Key) (erased int, err error) {
	t, err := Load(ctx, s, key)
	if err != nil || t.Response == nil {
		return 0, err
	}
	var errs []error
	for i := range t.Records {
		r := &t.Records[i]
		if r.Meta.Secret != Sealed || r.Err != nil {
			continue
		}
		if err := s.Erase(ctx, *r); err != nil {
			errs = append(errs, err)
			continue
		}
		erased++
	}
	return erased, errors.Join(errs...)
}
