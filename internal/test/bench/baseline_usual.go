package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
)

// usualFlow is what one writes with nats.go: claim the turn in a KV bucket, publish the call
// and the response with a Nats-Msg-Id, mark the claim as completed, double ack; each awaited,
// one goroutine a turn. It decodes and checks nothing.
type usualFlow struct {
	*baseline

	claims jetstream.KeyValue
	slots  chan struct{}
	fatal  failure
}

// claimsBucket holds the claims of the usual flow.
const claimsBucket = "BENCH_CLAIMS"

// The contents of the claims.
const (
	claimed   = `{"status":"claimed","owner":"bench"}`
	completed = `{"status":"completed","owner":"bench"}`
)

func newUsual(ctx context.Context, b *baseline) (*usualFlow, error) {
	claims, err := b.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: claimsBucket, Storage: jetstream.FileStorage})
	if err != nil {
		return nil, fmt.Errorf("usual: make the bucket of claims: %w", err)
	}
	return &usualFlow{baseline: b, claims: claims, slots: make(chan struct{}, b.inFlight), fatal: make(failure, 1)}, nil
}

// Run implements flow.
func (f *usualFlow) Run(ctx context.Context) error {
	turns, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	return f.consume(ctx, f.fatal, func(i int, m jetstream.Msg) {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		wg.Go(func() {
			if err := f.turn(turns, i, m); err != nil && turns.Err() == nil {
				f.fatal.set(fmt.Sprintf("usual: turn %d", i), err)
			}
			<-f.slots
		})
	})
}

func (f *usualFlow) turn(ctx context.Context, i int, m jetstream.Msg) error {
	key := turnKey(i).String()
	revision, err := f.claims.Create(ctx, key, []byte(claimed))
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	id := turnID(i).Turn
	if _, err := f.js.Publish(ctx, f.subject(i, events.KindToolCall), f.call, jetstream.WithMsgID(id+".call")); err != nil {
		return fmt.Errorf("call: %w", err)
	}
	if _, err := f.js.Publish(ctx, f.subject(i, events.KindToolResponse), f.response, jetstream.WithMsgID(id+".response")); err != nil {
		return fmt.Errorf("response: %w", err)
	}
	if _, err := f.claims.Update(ctx, key, []byte(completed), revision); err != nil {
		return fmt.Errorf("completion: %w", err)
	}
	if err := m.DoubleAck(ctx); err != nil {
		return fmt.Errorf("ack: %w", err)
	}
	return nil
}
