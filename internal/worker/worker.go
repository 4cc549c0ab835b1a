// Package worker implements oneturn.Worker: it connects the message handlers (package handlers)
// with a NATS connection, the tools and the settings.
//
// worker.go starts the parts and ends them: the inbox of turns (deliveries.go), the inbox of timers and sweeps (timers.go),
// subscriptions and the request API (subscriptions.go). config.go has the settings and their defaults,
// tools.go and go_tools.go the tools, rate_bucket.go and tools_ready.go the checks before the first turn. While
// it runs, the worker watches its streams (stream_guard.go), the room of the store (store_room.go), whether the
// journal accepts writes (write_health.go), and its permissions (permissions.go). Everything that makes it not
// ready ends in [Worker.Ready].
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/denied"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/searches"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// Worker consumes turns and runs their tools.
type Worker struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	c       Config
	space   subjects.Space
	keys    *secrets.Keys // nil for none
	metrics *metrics.Metrics
	sweeps  *metrics.Sweep
	tools   *workerTools
	set     atomic.Pointer[bindings.Set]
	inbox   atomic.Pointer[inbox.Inbox]
	journal atomic.Pointer[kvstore.Store]
	idle    atomic.Pointer[error] // why no tool can run, before the first turn
	writes  writeHealth
	room    storeRoom
	denied  denied.Denials
	lines   throttle.Lines // of what messages can cause
}

// ErrNoConnection is returned for a nil connection.
var ErrNoConnection = errors.New("oneturn: no NATS connection: make one with nats.Connect")

// New checks the configuration and loads the manifests. It does no network I/O.
func New(nc *nats.Conn, c Config) (*Worker, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("oneturn worker: %w", err)
	}
	if nc == nil {
		return nil, ErrNoConnection
	}
	w := &Worker{nc: nc, c: c}
	if w.keys, err = c.keys(); err != nil {
		return nil, fmt.Errorf("oneturn worker: %w", err)
	}
	if w.space, err = subjects.New(c.Prefix); err != nil {
		return nil, err
	}
	if w.space, err = w.space.WithReplies(c.ReplyPrefixes...); err != nil {
		return nil, err
	}
	if w.js, err = jetstream.New(nc); err != nil {
		return nil, fmt.Errorf("oneturn worker: %w", err)
	}
	if w.metrics, err = metrics.New(c.Registry); err != nil {
		return nil, fmt.Errorf("oneturn worker: metrics: %w", err)
	}
	if w.sweeps, err = metrics.NewSweep(c.Registry); err != nil {
		return nil, fmt.Errorf("oneturn worker: metrics: %w", err)
	}
	if w.tools, err = newWorkerTools(nc, w.space, c); err != nil {
		return nil, fmt.Errorf("oneturn worker: %w", err)
	}
	if err := c.Registry.Register(w.tools); err != nil {
		return nil, fmt.Errorf("oneturn worker: metrics: %w", err)
	}
	set, err := bindings.Load(context.Background(), w.tools.options())
	if err != nil {
		return nil, fmt.Errorf("oneturn worker: %w", err)
	}
	if err := checkTools(c.Tools, set); err != nil {
		return nil, fmt.Errorf("oneturn worker: %w", err)
	}
	w.adopt(set)
	return w, nil
}

// Bindings returns the active bindings.
func (w *Worker) Bindings() *bindings.Set { return w.set.Load() }

// Name returns the worker's name in records and logs.
func (w *Worker) Name() string { return w.c.Name }

// Ready reports why the worker does not consume, or nil when it does.
func (w *Worker) Ready() error {
	in := w.inbox.Load()
	if in == nil {
		if idle := w.idle.Load(); idle != nil {
			return *idle
		}
		return errors.New("not started")
	}
	return errors.Join(in.Ready(), w.room.err(), w.writes.err(), w.journal.Load().Err(), w.denied.Err(deniedFor))
}

// deniedFor is how long a worker is not ready after it was denied something.
const deniedFor = time.Minute

// Run consumes turns until ctx ends, then drains: it stops pulling, requeues what it has not
// claimed, lets running tools finish for SoftStop and then stops them. It returns an
// error only for what cannot recover: streams, buckets or consumers that do not exist or are
// too short-lived, and a connection that was closed for good.
func (w *Worker) Run(ctx context.Context) error {
	defer w.tools.close()
	defer w.denied.Watch(w.nc, w.space.Prefix())()
	err := w.run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) { // it was stopped while it checked the server
		w.c.Logger.Info("worker stopped before it had begun", "name", w.c.Name)
		return nil
	}
	if err != nil && w.nc.IsClosed() && !errors.Is(err, inbox.ErrClosed) { // which part of the worker notices first varies
		err = fmt.Errorf("oneturn worker: %w: %w", inbox.ErrClosed, err)
	}
	return w.denied.Explain(err)
}

func (w *Worker) run(ctx context.Context) error {
	consumer, err := w.checkServer(ctx)
	if err != nil {
		return err
	}
	ackWait := consumer.AckWait
	kv, err := kvstore.Open(w.nc, w.space)
	if err != nil {
		return err
	}
	defer kv.Close()
	if err := kv.Check(ctx); err != nil {
		return fmt.Errorf("oneturn worker: %w", err)
	}
	w.journal.Store(kv)
	if err := w.awaitTools(ctx); err != nil {
		return err
	}
	rates := limits.NewKV(w.js, w.space)
	if err := w.checkRates(ctx, rates); err != nil {
		return err
	}
	limiter := limits.New(rates, w.c.Logger)
	defer limiter.Close()
	w.tools.limiter.Store(limiter)
	reader := query.New(w.nc, w.space, kv, searches.New(w.nc.FlushWithContext))
	h, err := w.handlers(ctx, reader, limiter, consumer.MaxAckPending)
	if err != nil {
		return err
	}
	pages, err := sweep.OpenPages(ctx, w.js, w.space)
	if err != nil {
		return err
	}
	streams, err := w.requiredStreams(ctx, kv)
	if err != nil {
		return err
	}
	in, err := inbox.New(w.nc, inbox.Options{
		Stream: w.space.InStream(), Consumer: w.space.WorkerConsumer(w.c.Pool), Slots: w.c.Slots,
		AckWait: ackWait, SoftStop: w.c.SoftStop, Logger: w.c.Logger,
		OnConfig: func(c jetstream.ConsumerConfig) { h.SetMaxAckPending(c.MaxAckPending) },
		Handle:   func(ctx context.Context, d *inbox.Delivery) { w.handle(ctx, h, d) },
	})
	if err != nil {
		return err
	}
	stop, err := w.listen(reader, h)
	if err != nil {
		return err
	}
	defer stop()
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	side, stopSide := context.WithCancel(running)
	var sides sync.WaitGroup
	sides.Go(func() {
		<-side.Done()
		if running.Err() == nil {
			return // the inbox failed: nothing is left to drain
		}
		w.c.Logger.Info("draining: no new turns are taken, running tools may finish", "running", h.Running(), "at_most", w.c.SoftStop)
		h.Drain()
	})
	sides.Go(func() { w.timers(side, kv, h, pages, ackWait, fail) })
	sides.Go(func() { w.watch(side) })
	sides.Go(func() { w.tools.Discover(side) })
	sides.Go(func() { w.pollQuestions(side, h) })
	checkStore := w.guardStore()
	checkStore(side) // before the first pull
	sides.Go(func() { every(side, storeCheck, checkStore) })
	w.checkPermissions(side)
	sides.Go(func() { every(side, deniedFor/2, w.checkPermissions) })
	sides.Go(func() { w.guardStreams(side, kv, streams, fail) })
	defer func() {
		stopSide()
		sides.Wait()
	}()
	w.inbox.Store(in)
	w.c.Logger.Info("worker ready", "name", w.c.Name, "pool", w.c.Pool, "slots", w.c.Slots, "ack_wait", ackWait,
		"workflows", len(w.Bindings().Workflows()), "digest", w.Bindings().Digest())
	err = in.Run(running, handlers.ErrDraining)
	if err == nil && ctx.Err() == nil {
		err = context.Cause(running)
	}
	w.c.Logger.Info("worker stopped", "name", w.c.Name)
	return err
}

// handlers wires what handles messages.
func (w *Worker) handlers(ctx context.Context, reader *query.Reader, limiter *limits.Limiter, maxAckPending int) (*handlers.Handlers, error) {
	blobs, err := store.NewBlobs(ctx, w.nc, w.js, w.space)
	if err != nil {
		return nil, err
	}
	contexts, err := variables.New(ctx, w.js, w.space)
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

// checkServer verifies the streams and buckets that a worker needs and never creates, and returns the
// configuration of the consumer.
func (w *Worker) checkServer(ctx context.Context) (jetstream.ConsumerConfig, error) {
	var none jetstream.ConsumerConfig
	life, age := max(w.c.MaxTurnLife, time.Second), max(w.c.MaxEventAge, time.Second) // the least that can be planned
	plan, err := provision.New(provision.Options{
		Space: w.space, Pools: []string{w.c.Pool}, MaxTurnLife: life, MaxEventAge: age,
		Retention: max(provision.DefaultRetention, provision.MinRetention(life, age)),
	})
	if err != nil {
		return none, fmt.Errorf("oneturn worker: %w", err)
	}
	if err := provision.Require(ctx, w.js, plan, w.c.Logger); err != nil {
		return none, fmt.Errorf("oneturn worker: %w", err)
	}
	consumer, err := w.js.Consumer(ctx, w.space.InStream(), w.space.WorkerConsumer(w.c.Pool))
	if err != nil {
		return none, fmt.Errorf("oneturn worker: consumer %s of stream %s: %w: run `turnctl provision --pools %s` (and start NATS with JetStream)",
			w.space.WorkerConsumer(w.c.Pool), w.space.InStream(), err, w.c.Pool)
	}
	return consumer.CachedInfo().Config, nil
}

// adopt activates a set of bindings and passes the tools that it names to the toolbox.
func (w *Worker) adopt(set *bindings.Set) {
	old := w.set.Swap(set)
	if old == nil {
		w.tools.Adopt(nil, set)
		return // the caller of New has the diagnostics in Bindings
	}
	for _, c := range bindings.Causes(set.Diagnostics()) {
		if c.Severity == diag.SeverityError {
			w.c.Logger.Warn("manifest error", "diagnostic", c.String())
		}
	}
	w.tools.Adopt(old, set)
}

// watch follows changes of the workflow folder.
func (w *Worker) watch(ctx context.Context) {
	if !w.c.Watch || w.c.Workflows == "" {
		return
	}
	options := w.tools.options()
	options.From = w.Bindings()
	err := bindings.Watch(ctx, options, func(set *bindings.Set, err error) {
		if err != nil {
			w.c.Logger.Error("the workflow folder cannot be read; the bindings stay as they are", "err", err)
		}
		old := w.Bindings()
		switch {
		case set == nil || set.Equal(old):
		case set.Digest() == old.Digest(): // an edit that was refused, or one that was taken back
			w.adopt(set)
			w.c.Logger.Info("workflows unchanged", "errors", set.Errors(), "digest", set.Digest())
		default:
			w.adopt(set)
			w.c.Logger.Info("workflows changed", "workflows", len(set.Workflows()), "digest", set.Digest())
		}
	})
	if err != nil && ctx.Err() == nil {
		w.c.Logger.Error("the workflow folder is not watched", "err", err)
	}
}
