// Package worker implements oneturn.Worker: it connects the message handlers (package handlers)
// with a NATS connection, the tools and the settings.
//
// worker.go starts the parts and ends them: the handlers of messages (handlers.go), the inbox of turns (deliveries.go, and
// erase_secret.go for messages with a secret), the inbox of timers and sweeps (timers.go), subscriptions and the request
// API (subscriptions.go). config.go has the settings and their defaults, manifests.go follows the workflow folder and lists the
// workflows that are announced to gateways, tools.go and go_tools.go have the tools, tool_metrics.go their metrics.
//
// Before the first turn it checks the server (server_ready.go), its bucket of rates (rates_ready.go) and whether a tool can
// run (tools_ready.go). While it runs it checks whether its streams exist (stream_presence.go), how full the store is
// (store_space.go), whether the journal accepts writes (write_health.go), and one permission that is needed seldom
// (deferral_permission.go). What makes it not ready ends in [Worker.Ready] (ready.go).
package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/catalog"
	"github.com/oneturn/oneturn/internal/denied"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/searchbudget"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/variables"
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
	catalog *catalog.Announcer
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
	w.catalog = catalog.NewAnnouncer(w.js, w.space, c.Pool, w.workflows, c.Logger)
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

// Run consumes turns until ctx ends, then drains: it stops pulling, requeues what it has not
// claimed, lets running tools finish for SoftStop and then stops them. It returns an
// error only for what cannot recover: streams, buckets or consumers that do not exist or are
// too short-lived, and a connection that was closed for good.
func (w *Worker) Run(ctx context.Context) error {
	defer w.tools.close()
	defer w.denied.Watch(w.nc, w.space.Prefix(), catalog.Requests(w.space)...)()
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
	reader := query.New(w.nc, w.space, kv, searchbudget.New(w.nc, w.nc))
	contexts, err := variables.New(ctx, w.js, w.space)
	if err != nil {
		return err
	}
	h, err := w.handlers(ctx, reader, contexts, limiter, consumer.MaxAckPending)
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
	stop, err := w.listen(reader, contexts, h)
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
	sides.Go(func() { w.catalog.Run(side) })
	checkStore := w.watchStore()
	checkStore(side) // before the first pull
	sides.Go(func() { every(side, storeCheck, checkStore) })
	w.checkDeferralPermission(side)
	sides.Go(func() { every(side, deniedFor/2, w.checkDeferralPermission) })
	sides.Go(func() { w.watchStreams(side, kv, streams, fail) })
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
