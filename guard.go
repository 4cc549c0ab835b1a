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
// Rates are optional: workers without need no bucket for them.
func (w *Worker) reliesOn(kv *idempotency.KV) []relied {
	all := []relied{kv, presence.NewStream(w.nc, "KV_"+w.space.LimitsBucket(), true)}
	for _, name := range []string{
		w.space.InStream(), w.space.TimersStream(), "KV_" + w.space.ContextBucket(), "OBJ_" + w.space.BlobsBucket(), w.space.DeadStream(),
	} {
		all = append(all, presence.NewStream(w.nc, name, false))
	}
	return all
}

// guardStreams ends the worker when a stream is gone. What comes in place of the journal has
// forgotten every turn; without one of the others turns wait, or dead letters go round, for ever.
func (w *Worker) guardStreams(ctx context.Context, kv *idempotency.KV, fail func(error)) {
	streams := w.reliesOn(kv)
	next := time.NewTimer(0)
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
