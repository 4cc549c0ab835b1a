package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/subjects"
)

// baseline is what both baselines have: they decode nothing, check nothing and publish
// prepared bytes of the size of the product's events.
type baseline struct {
	nc             *nats.Conn
	js             jetstream.JetStream
	space          subjects.Space
	inFlight       int
	call, response []byte
	consuming      atomic.Bool
}

// pullMax and pullBytes bound how many messages the baselines pull ahead, as in the measurements that the
// product's design rests on.
const (
	pullMax   = 2000
	pullBytes = 64 << 20 // for large payloads
)

// Ready implements flow.
func (b *baseline) Ready() error {
	if !b.consuming.Load() {
		return errors.New("not consuming")
	}
	return nil
}

// consume calls handle for each message, one at a time, until ctx ends or fatal has an error.
func (b *baseline) consume(ctx context.Context, fatal <-chan error, handle func(i int, m jetstream.Msg)) error {
	consumer, err := b.js.Consumer(ctx, b.space.InStream(), b.space.WorkerConsumer(subjects.DefaultPool))
	if err != nil {
		return fmt.Errorf("find the consumer: %w", err)
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			return // not a message of the stream
		}
		handle(int(meta.Sequence.Stream)-1, m) // the publisher numbers turns from 0
	}, jetstream.PullMaxMessages(min(pullMax, max(2*b.inFlight, pullBytes/len(b.call)))))
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	b.consuming.Store(true)
	select {
	case <-ctx.Done():
	case err = <-fatal:
	}
	consuming.Stop()
	<-consuming.Closed()
	return err
}

func (b *baseline) subject(i int, kind string) string {
	return b.space.JournalSubject(turnKey(i).Public(kind))
}

// failure keeps the first error of a flow.
type failure chan error

func (f failure) set(op string, err error) {
	select {
	case f <- fmt.Errorf("%s: %w", op, err):
	default:
	}
}
