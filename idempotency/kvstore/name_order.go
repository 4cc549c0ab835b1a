package kvstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/oneturn/oneturn/idempotency"
)

// maxKnown bounds the sequences that an [Order] remembers: some 60 MB of names
// when they are long, of up to 512 bytes. It forgets
// all of them at the same time.
const maxKnown = 100_000

// Index is a stream whose subjects the server keeps in an index.
type Index interface {
	// Subjects returns the subjects that match a filter and the first sequence of the stream. It fails
	// with [idempotency.ErrTooMany] beyond 10,000.
	Subjects(ctx context.Context, filter string) (names map[string]uint64, first uint64, err error)
	// Sequence returns where the last message of a subject is, or [idempotency.ErrNotFound].
	Sequence(ctx context.Context, name string) (uint64, error)
}

// journalIndex is the index of the journal. Its filters are keys.
type journalIndex struct{ kv *Store }

// Subjects implements [Index].
func (i journalIndex) Subjects(ctx context.Context, filter string) (map[string]uint64, uint64, error) {
	return i.kv.names(ctx, filter)
}

// Sequence implements [Index].
func (i journalIndex) Sequence(ctx context.Context, name string) (uint64, error) {
	r, err := i.kv.read(ctx, getRequest{Last: name})
	return r.Seq, err
}

// Order returns which sequences the messages of a filter have. To search a stream for the next one,
// the server goes through all that lies between, and stores nothing meanwhile: that is cheap when
// they lie close together. An Order asks the server's index for their subjects and looks each up,
// one short request at a time, and remembers where it was. It is safe for concurrent use.
type Order struct {
	index Index

	oversized OversizedFilters

	mu    sync.Mutex
	known map[string]uint64 // by subject
}

// NewOrder returns an order of the records of a journal that knows nothing yet.
func NewOrder(kv *Store) *Order { return NewOrderOf(journalIndex{kv}) }

// NewOrderOf is [NewOrder] for another stream.
func NewOrderOf(index Index) *Order {
	return &Order{index: index, known: map[string]uint64{}}
}

// Place is where a message was when an [Order] first saw it. A record of the journal never moves.
type Place struct {
	Subject string
	Seq     uint64
}

// From returns the places of the messages that match a filter, from a sequence on, in order. It
// fails with [idempotency.ErrTooMany] beyond 10,000 of them.
func (o *Order) From(ctx context.Context, filter string, from uint64) ([]Place, error) {
	return o.FromWithin(ctx, func(search func() error) error { return search() }, filter, from)
}

// FromWithin is From within a budget, which may refuse the search for the names.
func (o *Order) FromWithin(ctx context.Context, budget func(search func() error) error, filter string, from uint64) ([]Place, error) {
	if o.oversized.has(filter) {
		return nil, idempotency.ErrTooMany
	}
	var names map[string]uint64
	var first uint64
	err := budget(func() (err error) {
		names, first, err = o.index.Subjects(ctx, filter)
		return err
	})
	if errors.Is(err, idempotency.ErrTooMany) {
		o.oversized.add(filter)
	}
	if err != nil {
		return nil, err
	}
	var found []Place
	for _, name := range slices.Sorted(maps.Keys(names)) { // often the order in which they were written
		seq := o.at(name)
		if seq < first { // not known, or expired and created again
			seq, err = o.index.Sequence(ctx, name)
			if errors.Is(err, idempotency.ErrNotFound) {
				continue // it has just expired
			}
			if err != nil {
				return nil, err
			}
			o.remember(name, seq)
		}
		if seq >= from {
			found = append(found, Place{name, seq})
		}
	}
	slices.SortFunc(found, func(a, b Place) int { return cmp.Compare(a.Seq, b.Seq) })
	return found, nil
}

// at is where a record was, 0 if that is not known.
func (o *Order) at(name string) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.known[name]
}

func (o *Order) remember(name string, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.known) >= maxKnown {
		clear(o.known)
	}
	o.known[name] = seq
}
