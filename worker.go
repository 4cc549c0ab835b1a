package oneturn

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/worker"
)

// Worker consumes turns and runs their tools.
type Worker struct{ w *worker.Worker }

// NewWorker checks the configuration and loads the manifests. It does no network I/O; Run
// does. The connection should be made with nats.ReconnectBufSize(-1) and
// nats.MaxReconnects(-1), so that no record is sent long after it was given up.
func NewWorker(nc *nats.Conn, c Config) (*Worker, error) {
	w, err := worker.New(nc, c.internal())
	if err != nil {
		return nil, err
	}
	return &Worker{w}, nil
}

// Run consumes turns until ctx ends, then drains: it stops pulling, requeues what it has not claimed, lets
// running tools finish for SoftStop and then stops them. It returns an error only for what cannot recover:
// streams, buckets or consumers that do not exist or are too short-lived, and a connection that was closed
// for good.
func (w *Worker) Run(ctx context.Context) error {
	return w.w.Run(ctx)
}

// Ready reports why the worker does not consume, or nil when it does.
func (w *Worker) Ready() error {
	return w.w.Ready()
}

// Bindings returns the active bindings.
func (w *Worker) Bindings() *bindings.Set { return w.w.Bindings() }

// Name returns the worker's name in records and logs.
func (w *Worker) Name() string { return w.w.Name() }
