package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/jsapi"
)

// maxKnown bounds the sequences that an [Order] remembers: some 60 MB of names
// when they are long, of up to 512 bytes. It forgets
// all of them at the same time.
const maxKnown = 100_000

// maxNames is how many subjects of a filter are read by the server's index of names.
const maxNames = 10_000

// Order returns which sequences the messages of a filter have. To search a stream for the next one,
// the server goes through all that lies between, and stores nothing meanwhile: that is cheap when
// they lie close together. An Order asks the server's index for their subjects and looks each up,
// one short request at a time, and remembers where it was. It is safe for concurrent use.
type Order struct {
	nc     *nats.Conn
	stream string

	oversized OversizedFilters

	mu    sync.Mutex
	known map[string]uint64 // by subject
}

// NewOrder returns an order of the messages of a stream that knows nothing yet.
func NewOrder(nc *nats.Conn, stream string) *Order {
	return &Order{nc: nc, stream: stream, known: map[string]uint64{}}
}

// Place is where a message was when an [Order] first saw it. A record of the journal never moves.
type Place struct {
	Subject string
	Seq     uint64
}

// From returns the places of the messages that match a filter, from a sequence on, in order. It
// fails with [idempotency.ErrTooMany] beyond 10,000 of them. Budget runs the search for the names, or refuses it.
func (o *Order) From(ctx context.Context, budget func(search func() error) error, filter string, from uint64) ([]Place, error) {
	if o.oversized.has(filter) {
		return nil, idempotency.ErrTooMany
	}
	var state jetstream.StreamState
	err := budget(func() error {
		info, err := jsapi.Info(ctx, o.nc, o.stream, filter, 0)
		switch {
		case err != nil:
			return fmt.Errorf("list the subjects of %s: %w", filter, err)
		case len(info.State.Subjects) > maxNames:
			return fmt.Errorf("%s has over %d messages: %w", filter, maxNames, idempotency.ErrTooMany)
		}
		state = info.State
		return nil
	})
	if errors.Is(err, idempotency.ErrTooMany) {
		o.oversized.add(filter)
	}
	if err != nil {
		return nil, err
	}
	var found []Place
	for _, name := range slices.Sorted(maps.Keys(state.Subjects)) { // often the order in which they were written
		seq := o.at(name)
		if seq < state.FirstSeq { // not known, or expired and created again
			seq, err = o.last(ctx, name)
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

// last returns the sequence of the last message that matches a filter, or [idempotency.ErrNotFound].
func (o *Order) last(ctx context.Context, filter string) (uint64, error) {
	m, err := o.read(ctx, jsapi.Get{Last: filter})
	return m.Seq, err
}

// read reads a message from the leader, or returns [idempotency.ErrNotFound].
func (o *Order) read(ctx context.Context, get jsapi.Get) (jsapi.Message, error) {
	m, err := jsapi.Read(ctx, o.nc, o.stream, get)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return jsapi.Message{}, idempotency.ErrNotFound
	case err != nil:
		return jsapi.Message{}, err
	}
	return *m, nil
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
