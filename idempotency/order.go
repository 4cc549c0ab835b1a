package idempotency

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxKnown bounds the sequences that an [Order] remembers: some 60 MB of names
// when they are long, of up to 512 bytes. It forgets
// all of them at once.
const maxKnown = 100_000

// ErrTooMany says that a filter matches more records than an [Order] reads.
var ErrTooMany = errors.New("too many records")

// Index is a stream whose subjects the server keeps in an index.
type Index interface {
	// Subjects returns the subjects that match a filter and the first sequence of the stream. It fails
	// with [ErrTooMany] beyond 10,000.
	Subjects(ctx context.Context, filter string) (names map[string]uint64, first uint64, err error)
	// Sequence returns where the last message of a subject is, or [ErrNotFound].
	Sequence(ctx context.Context, name string) (uint64, error)
}

// journalIndex is the index of the journal. Its filters are keys.
type journalIndex struct{ kv *KV }

// Subjects implements [Index].
func (i journalIndex) Subjects(ctx context.Context, filter string) (map[string]uint64, uint64, error) {
	return i.kv.names(ctx, filter)
}

// Sequence implements [Index].
func (i journalIndex) Sequence(ctx context.Context, name string) (uint64, error) {
	r, err := i.kv.read(ctx, getRequest{Last: name})
	return r.Seq, err
}

// Order tells which sequences the messages of a filter have. To search a stream for the next one,
// the server goes through all that lies between, and stores nothing meanwhile: that is cheap when
// they lie close together. An Order asks the server's index for their subjects and looks each up,
// one short request at a time, and remembers where it was. It is safe for concurrent use.
type Order struct {
	index Index

	mu      sync.Mutex
	known   map[string]uint64    // by subject
	crowded map[string]time.Time // filters that match too many, and until when that is believed
}

// A list of too many names is megabytes long: who reads page by page must not ask for it again
// and again.
const (
	crowdedFor = time.Minute
	maxCrowded = 1000 // filters that are remembered
)

// NewOrder returns an order of the records of a journal that knows nothing yet.
func NewOrder(kv *KV) *Order { return NewOrderOf(journalIndex{kv}) }

// NewOrderOf is [NewOrder] for another stream.
func NewOrderOf(index Index) *Order {
	return &Order{index: index, known: map[string]uint64{}, crowded: map[string]time.Time{}}
}

// Place is where a message was when an [Order] first saw it. A record of the journal never moves.
type Place struct {
	Subject string
	Seq     uint64
}

// From returns the places of the messages that match a filter, from a sequence on, in order. It
// fails with [ErrTooMany] beyond 10,000 of them.
func (o *Order) From(ctx context.Context, filter string, from uint64) ([]Place, error) {
	if o.isCrowded(filter) {
		return nil, ErrTooMany
	}
	names, first, err := o.index.Subjects(ctx, filter)
	if errors.Is(err, ErrTooMany) {
		o.crowd(filter)
	}
	if err != nil {
		return nil, err
	}
	var found []Place
	for _, name := range slices.Sorted(maps.Keys(names)) { // often the order in which they were written
		seq := o.at(name)
		if seq < first { // not known, or expired and made anew
			seq, err = o.index.Sequence(ctx, name)
			if errors.Is(err, ErrNotFound) {
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

// isCrowded reports whether a filter is known to match too many records.
func (o *Order) isCrowded(filter string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Now().Before(o.crowded[filter])
}

func (o *Order) crowd(filter string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.crowded) >= maxCrowded {
		clear(o.crowded)
	}
	o.crowded[filter] = time.Now().Add(crowdedFor)
}
