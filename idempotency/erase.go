package idempotency

import (
	"context"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/subjects"
)

// Secrecy marks a private record whose data is, or contains, the answer to a secret question. It is stored in a header, so
// that a sweep finds sealed data that remains after the end of a turn.
type Secrecy string

// The values.
const (
	Plain  Secrecy = ""       // no secret
	Sealed Secrecy = "sealed" // encrypted, see [secrets.Keys]
	Erased Secrecy = "erased" // it was sealed; the data is removed, the record remains
)

// secrecyOf is the secrecy of data that is about to be stored.
func secrecyOf(data []byte) Secrecy {
	if secrets.Sealed(data) {
		return Sealed
	}
	return Plain
}

// AnswerName is the name under which the answer of a question is sealed.
func AnswerName(key subjects.Key, id string) string {
	return key.Private(events.RecordAnswer, subjects.Token(id))
}

// StepName is the name under which the result of a step is sealed.
func StepName(key subjects.Key, id string) string {
	return key.Private(events.RecordStep, subjects.Token(id))
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

// Erase is [Journal.Erase] of a store.
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
