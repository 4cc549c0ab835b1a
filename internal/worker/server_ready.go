package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/provision"
)

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
