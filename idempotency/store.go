package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/subjects"
)

// AnyToken stands in a filter for every tenant, chat, turn or question.
const AnyToken = "*"

// Store holds records that are created once and never change, but for the secrets in them and
// for what is left of a former life of their key.
type Store interface {
	// Create stores the record if its key is free and returns its sequence. With a sequence of
	// its own, r.Seq, it replaces the record with that sequence instead. Otherwise the
	// error is an *ExistsError (decided: another record is there, or none), ErrUndecided (a rival
	// write is in flight), ErrRefused (this record can never be stored), ErrGone (nothing can
	// ever be stored again), or anything else: the outcome is unknown, and the record may be
	// stored now, later or never. The caller may use r.Data for something else as soon as
	// Create returns.
	Create(ctx context.Context, r Record) (uint64, error)
	// At returns the record with a sequence, as the leader knows it, or ErrNotFound.
	At(ctx context.Context, seq uint64) (Record, error)
	// Last returns the record under a key, as the leader knows it, or ErrNotFound. Of a filter whose last token is
	// [AnyToken] it returns the last record that matches.
	Last(ctx context.Context, key string) (Record, error)
	// LastOf returns the record under each key, as Last does, nil where there is none. They may be read at the same
	// time, in any order.
	LastOf(ctx context.Context, keys []string) ([]*Record, error)
	// Scan returns all records of a call, as the leader knows them, in the order of their sequences. A cancel may
	// precede the claim. Known are records of an earlier scan, nil for none: those that never change need not be
	// read again. It fails with ErrTooMany for a call with more records than one read returns, and with ErrStale
	// if records that are listed are repeatedly not found.
	Scan(ctx context.Context, key subjects.Key, known []Record) ([]Record, error)
	// Erase takes the data from a record as it was read, and marks it as [Erased]: the only
	// change that a record ever sees. One that was erased already is fine.
	Erase(ctx context.Context, r Record) error
}

// Record is one fact of a turn.
type Record struct {
	Key  string    // journal key, see subjects.Key
	Meta Meta      // who wrote it, and under which lease
	Data []byte    // the event for public records
	Seq  uint64    // sequence in the journal; before it is stored, that of the record to replace, 0 for none
	Time time.Time // when the server stored it
	Err  error     // why Meta could not be read; such a record fails closed
}

// Damaged reports whether nobody can read the event of a public record: it is not known who
// wrote it, or it is no JSON.
func (r *Record) Damaged() bool { return r.Err != nil || !json.Valid(r.Data) }

// ExistsError is the answer of [Store.Create] when the key is taken, or not taken by the record to
// replace.
type ExistsError struct {
	Key string
	Seq uint64 // sequence of the record that is there, 0 if there is none
}

// Error implements error.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("journal: create %s: the key is taken by sequence %d", e.Key, e.Seq)
}

// Errors of a [Store].
var (
	// ErrUndecided says that a rival write of the same key is in flight (server error 10164):
	// nothing is decided yet, try again shortly.
	ErrUndecided = errors.New("journal: a rival write is in flight")
	// ErrNotFound says that no such record is there.
	ErrNotFound = errors.New("journal: no such record")
	// ErrDamaged says that a record is there and cannot be read.
	ErrDamaged = errors.New("journal: the record that is there cannot be read")
	// ErrRefused says that the record can never be stored, for example because it is larger
	// than the server's max_payload.
	ErrRefused = errors.New("journal: the record cannot be stored")
	// ErrGone says that the journal's bucket does not exist any more, or was created again since the store began to
	// use it. Nothing is stored after that: a new bucket does not have the claims of the old one and would run old
	// turns again. The worker has to end.
	ErrGone = errors.New("the journal is gone")
	// ErrTooMany says that a filter matches more records than one read returns.
	ErrTooMany = errors.New("too many records")
	// ErrStale says that reads lack a record which this worker has stored before them.
	ErrStale = errors.New("journal: reads lack a record that was stored before them: the server that answers is no longer the leader")
)
