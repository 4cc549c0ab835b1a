package idempotency

import (
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

// Order tells which sequences the records of a filter have. [KV.Next] searches the journal,
// and no record is written meanwhile: that is cheap when the records lie close together. An
// Order asks the server's index for their names and reads each by its name, one short request
// at a time, and remembers where it was: a record never moves. It is safe for concurrent use.
type Order struct {
	kv *KV

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

// NewOrder returns an order that knows nothing yet.
func NewOrder(kv *KV) *Order {
	return &Order{kv: kv, known: map[string]uint64{}, crowded: map[string]time.Time{}}
}

// From returns the sequences of the records that match a filter, from one on, in order. It
// fails with [ErrTooMany] beyond 10,000 records.
func (o *Order) From(ctx context.Context, filter string, from uint64) ([]uint64, error) {
	if o.isCrowded(filter) {
		return nil, ErrTooMany
	}
	names, first, err := o.kv.names(ctx, filter)
	if errors.Is(err, ErrTooMany) {
		o.crowd(filter)
	}
	if err != nil {
		return nil, err
	}
	var found []uint64
	for _, name := range slices.Sorted(maps.Keys(names)) { // often the order in which they were written
		seq := o.at(name)
		if seq < first { // not known, or expired and made anew
			r, err := o.kv.read(ctx, getRequest{Last: name})
			if errors.Is(err, ErrNotFound) {
				continue // it has just expired
			}
			if err != nil {
				return nil, err
			}
			seq = r.Seq
			o.remember(name, seq)
		}
		if seq >= from {
			found = append(found, seq)
		}
	}
	slices.Sort(found)
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
