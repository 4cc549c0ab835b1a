package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/presence"
)

// How often a worker checks that its streams still exist, and how soon again after a check that has not
// found one.
const (
	presenceCheck = 3 * time.Second
	presenceAgain = presence.Again
)

// requiredStream is a stream without which the worker cannot continue.
type requiredStream interface {
	Check(ctx context.Context) error // not nil once it is gone for good
	MaybeGone() bool
}

// requiredStreams lists the streams of a worker. The inboxes watch their consumers.
// Rates are optional: workers without need no bucket for them. The first check runs here, before the worker
// is ready, so that a stream that is re-created later is distinguished from the original one.
func (w *Worker) requiredStreams(ctx context.Context, kv *kvstore.Store) ([]requiredStream, error) {
	stream := func(name string, optional bool) requiredStream { return presence.NewStream(w.nc, name, optional) }
	streams := []requiredStream{
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

// watchStreams ends the worker when a stream is gone. A journal that was created in its place has no turns;
// without one of the others turns wait, or dead letters are redelivered, forever.
func (w *Worker) watchStreams(ctx context.Context, kv *kvstore.Store, streams []requiredStream, fail func(error)) {
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
				if s.MaybeGone() {
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
