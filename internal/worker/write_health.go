package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
)

// unwritable is how long the journal may take no write before the worker is not ready.
const unwritable = 15 * time.Second

// writeHealth records since when the journal takes no writes. A full disk, for one, stops a
// NATS server from storing anything until it is restarted, though it answers all else.
type writeHealth struct{ failing atomic.Int64 } // Unix nanoseconds, 0 when writes succeed

func (h *writeHealth) note(err error) {
	if err == nil {
		if h.failing.Load() != 0 {
			h.failing.Store(0)
		}
		return
	}
	var exists *idempotency.ExistsError // on the heap: not before it is needed
	switch {
	case errors.As(err, &exists), errors.Is(err, idempotency.ErrUndecided), errors.Is(err, idempotency.ErrRefused):
		h.failing.Store(0)
	case errors.Is(err, context.Canceled):
	default:
		h.failing.CompareAndSwap(0, time.Now().UnixNano())
	}
}

func (h *writeHealth) err() error {
	since := h.failing.Load()
	if since == 0 {
		return nil
	}
	if silent := time.Since(time.Unix(0, since)); silent > unwritable {
		return fmt.Errorf("the journal takes no writes for %s: is the server's disk full? Make room; then restart the NATS server, unless it is embedded in a worker: that one resumes by itself",
			silent.Round(time.Second))
	}
	return nil
}

// healthyStore records the outcome of every create.
type healthyStore struct {
	*kvstore.Store

	health *writeHealth
}

// Create implements [idempotency.Store].
func (s *healthyStore) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	seq, err := s.Store.Create(ctx, r)
	s.health.note(err)
	return seq, err
}
