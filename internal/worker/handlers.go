package worker

// The handlers of turns, answers and other messages with all they need: the journal, blobs, context variables, the
// engine, and functions that ask the server.

import (
	"context"
	"time"

	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/internal/variables"
)

// handlers wires what handles messages.
func (w *Worker) handlers(ctx context.Context, reader *query.Reader, contexts *variables.Variables, limiter *limits.Limiter, maxAckPending int) (*handlers.Handlers, error) {
	blobs, err := store.NewBlobs(ctx, w.nc, w.js, w.space)
	if err != nil {
		return nil, err
	}
	retries := store.Retries{Metrics: w.metrics, Logger: w.c.Logger}
	blobs.Retries, contexts.Retries = retries, retries
	journal := idempotency.New(&healthyStore{w.journal.Load(), &w.writes}, w.c.Name, idempotency.Options{Pool: w.c.Pool, OnUnknownWrite: w.metrics.UnknownWrites.Inc})
	contexts.Journal = journal
	return handlers.New(handlers.Config{
		Config: run.Config{
			Space:    w.space,
			Journal:  journal,
			Bindings: w.Bindings,
			Blobs:    blobs,
			Live:     w.nc.Publish,
			Metrics:  w.metrics,
			Logger:   w.c.Logger,
			Now:      time.Now,
			ServerTime: func(ctx context.Context) (time.Time, error) {
				return jsapi.ServerTime(ctx, w.js, w.space.InStream())
			},
			SecretKeys:  w.keys,
			MaxTurnLife: w.c.MaxTurnLife,
			Schedule:    timers.ScheduleExpiry(w.js, w.space),
			ParkAfter:   w.c.parkAfter(),
			MaxWaiting:  waitingPerSlot * w.c.Slots,
		},
		Engine: engine.New(engine.Options{
			Timeout: w.c.ToolTimeout, Tracer: w.c.tracer(),
			OnAbandoned: func(string) { w.metrics.Abandoned.Inc() }, OnLate: w.lateReturn,
			Cache: engine.NewLRU(w.c.cacheBytes()), Limiter: limiter,
		}),
		Tool:          w.tools.Find,
		Variables:     contexts,
		Dead:          deadletter.New(w.js, w.space, blobs, w.metrics),
		Names:         reader.Names,
		Full:          w.room.full,
		StoreLeft:     w.room.left,
		LeaseHeld:     sweep.ConfirmLeaseHeld(w.js, w.space),
		MaxAckPending: maxAckPending,
		Defer:         deferral.Publisher(w.js, w.space),
		DeferralQuota: deferral.NewQuota(w.js, w.space).Take,
		BindingGrace:  w.c.bindingGrace(),
		Alone:         w.c.Alone,
		MaxEventAge:   w.c.MaxEventAge,
	}), nil
}

// lateReturn counts a tool that returned after its turn had ended without it.
func (w *Worker) lateReturn(tool string) {
	w.c.Logger.Warn("an abandoned tool has returned; its result is dropped", "tool", tool)
	w.metrics.LateResults.Inc()
}

// waitingPerSlot is how many runs may wait in memory for people before more are parked immediately, for
// each slot.
const waitingPerSlot = 4
