package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/subjects"
)

// timerSlots is how many timers are handled at the same time. There is one sweep at a time; ends of questions
// wait only for the server to confirm that they are stored, and many may come in the same second.
const timerSlots = 128

// timers takes its part in what is due, sweeps and the ends of questions, until ctx ends. It
// calls fail for what cannot recover.
func (w *Worker) timers(ctx context.Context, store idempotency.Store, h *handlers.Handlers, pages sweep.Pages, ackWait time.Duration, fail func(error)) {
	stream, name := w.space.TimersStream(), w.space.TimersConsumer()
	consumer, err := w.js.Consumer(ctx, stream, name)
	if err != nil {
		if ctx.Err() == nil {
			fail(fmt.Errorf("oneturn worker: consumer %s of stream %s: %w: run `turnctl provision`", name, stream, err))
		}
		return
	}
	due := &timers.Timers{
		Sweep: &sweep.Sweep{
			Space: w.space, JS: w.js, Store: store, LeaseHeld: sweep.LeaseHeld(w.js, w.space), AckWait: ackWait, MaxTurnLife: w.c.MaxTurnLife,
			Rate: sweep.Rate, Budget: sweep.Budget, Logger: w.c.Logger,
			Erase: func(ctx context.Context, key subjects.Key) (int, error) { return idempotency.Erase(ctx, store, key) },
		},
		Pages: pages, Dead: h.Dead, Metrics: w.metrics, Sweeps: w.sweeps, Interval: w.c.SweepEvery,
	}
	in, err := inbox.New(w.nc, inbox.Options{
		Stream: stream, Consumer: name, Slots: timerSlots, AckWait: consumer.CachedInfo().Config.AckWait,
		SoftStop: time.Millisecond, // a sweep that stops is repeated, and so is an expiry
		Logger:   w.c.Logger,
		Handle: func(ctx context.Context, d *inbox.Delivery) {
			w.settle(d, due.Handle(ctx, message(d)))
		},
	})
	if err != nil {
		fail(err)
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.keepScheduled(ctx, due)
	}()
	if err := in.Run(ctx, handlers.ErrDraining); err != nil {
		fail(err)
	}
	<-done
}

// keepScheduled creates the first schedule, and creates it again if it is lost. A worker that takes no part
// in sweeps creates none.
func (w *Worker) keepScheduled(ctx context.Context, due *timers.Timers) {
	if w.c.NoSweeps {
		return
	}
	tick := time.NewTicker(w.c.SweepEvery)
	defer tick.Stop()
	for {
		if err := due.Ensure(ctx); err != nil && ctx.Err() == nil {
			w.c.Logger.Warn("no sweep can be scheduled; it will be retried", "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
