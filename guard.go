package oneturn

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/presence"
)

// How often a worker looks whether all that it relies on still exists, and how soon again after
// a look that has not found something.
const (
	presenceCheck = 3 * time.Second
	presenceAgain = presence.Again
)

// relied is a stream that a worker cannot go on without.
type relied interface {
	Check(ctx context.Context) error // not nil once it is gone for good
	Suspect() bool
}

// reliesOn lists the streams of a worker. The consumers are watched by those who pull from them.
// Rates are optional: workers without need no bucket for them. The first look is taken here, before
// the worker is ready: one that is made anew later is told apart from what the worker has begun with.
func (w *Worker) reliesOn(ctx context.Context, kv *idempotency.KV) ([]relied, error) {
	stream := func(name string, optional bool) relied { return presence.NewStream(w.nc, name, optional) }
	streams := []relied{
		kv,
		stream("KV_"+w.space.LimitsBucket(), true),
		stream(w.space.InStream(), false), stream(w.space.TimersStream(), false),
		stream("KV_"+w.space.ContextBucket(), false), stream("OBJ_"+w.space.BlobsBucket(), false), stream(w.space.DeadStream(), false),
	}
	for _, s := range streams {
		if err := s.Check(ctx); err != nil {
			return nil, fmt.Errorf("oneturn worker: %w", err)
		}
	}
	return streams, nil
}

// guardStreams ends the worker when a stream is gone. What comes in place of the journal has
// forgotten every turn; without one of the others turns wait, or dead letters go round, for ever.
func (w *Worker) guardStreams(ctx context.Context, kv *idempotency.KV, streams []relied, fail func(error)) {
	next := time.NewTimer(presenceAgain)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			next.Reset(presenceCheck)
			for _, s := range streams {
				if err := s.Check(ctx); err != nil {
					w.lost(err, fail)
					return
				}
				if s.Suspect() {
					next.Reset(presenceAgain)
				}
			}
		case <-kv.Gone():
			w.lost(kv.Err(), fail)
			return
		case <-ctx.Done():
			return
		}
	}
}

func (w *Worker) lost(err error, fail func(error)) {
	w.c.Logger.Error("a stream is gone; the worker ends", "err", err)
	fail(fmt.Errorf("oneturn worker: %w", err))
}
