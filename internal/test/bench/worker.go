package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/memory"
	"github.com/oneturn/oneturn/subjects"
)

// The arms of a comparison.
const (
	product = "product" // oneturn.Worker
	raw     = "raw"     // the physical limit
	usual   = "usual"   // what one writes with nats.go
)

// flow consumes turns until ctx ends. *oneturn.Worker is one.
type flow interface {
	Run(ctx context.Context) error
	Ready() error // nil once it consumes
}

// worker is the role that runs a flow.
type worker struct {
	process

	nc     *nats.Conn
	flow   flow
	cancel context.CancelFunc // nil before run
	ended  chan error
}

func startWorker(ctx context.Context, s spec, dial dialer) (*worker, error) {
	p, err := loadPayload(s.Payload)
	if err != nil {
		return nil, err
	}
	memory.Pace(os.LookupEnv, memory.ContainerLimit) // of every arm as of cmd/worker
	nc, err := dial()
	if err != nil {
		return nil, fmt.Errorf("connect the worker: %w", err)
	}
	f, err := newFlow(ctx, nc, s, p)
	if err != nil {
		nc.Close()
		return nil, err
	}
	return &worker{process: process{spec: s}, nc: nc, flow: f, ended: make(chan error, 1)}, nil
}

func (w *worker) do(ctx context.Context, r request) (reply, error) {
	if r.Do == "run" {
		return reply{}, w.run(ctx)
	}
	return w.process.do(r)
}

// run starts the flow and waits until it consumes.
func (w *worker) run(ctx context.Context) error {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() { w.ended <- w.flow.Run(ctx) }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for w.flow.Ready() != nil {
		select {
		case err := <-w.ended:
			w.ended <- err
			return fmt.Errorf("the worker ended before it was ready: %w", err)
		case <-tick.C:
		}
	}
	return nil
}

func newFlow(ctx context.Context, nc *nats.Conn, s spec, p payload) (flow, error) {
	space, err := subjects.New(subjects.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	if s.Arm == product {
		return oneturn.NewWorker(nc, oneturn.Config{
			Tools: s.Folders.tools(), Workflows: s.Folders.Dir, Python: oneturn.Python{Children: s.Children}, Slots: s.InFlight, ParkAfter: max(s.ParkAfter, 0), ParkImmediately: s.ParkAfter < 0, BindingGrace: s.BindingGrace,
			Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("connect the worker: %w", err)
	}
	base := &baseline{nc: nc, js: js, space: space, inFlight: s.InFlight}
	if base.call, base.response, err = p.outbound(); err != nil {
		return nil, err
	}
	if s.Arm == raw {
		return newRaw(base), nil
	}
	return newUsual(ctx, base)
}

func (w *worker) close() error {
	defer w.nc.Close()
	if w.cancel == nil {
		return nil
	}
	w.cancel()
	return <-w.ended
}
