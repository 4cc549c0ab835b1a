package idempotency

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
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

	mu    sync.Mutex
	known map[string]uint64 // by subject
}

// NewOrder returns an order that knows nothing yet.
func NewOrder(kv *KV) *Order { return &Order{kv: kv, known: map[string]uint64{}} }

// From returns the sequences of the records that match a filter, from one on, in order. It
// fails with [ErrTooMany] beyond 10,000 records.
func (o *Order) From(ctx context.Context, filter string, from uint64) ([]uint64, error) {
	names, first, err := o.kv.names(ctx, filter)
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
