package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// publisher is the role that publishes turns, numbered from 0.
type publisher struct {
	process

	nc      *nats.Conn
	js      jetstream.JetStream
	space   subjects.Space
	payload payload
}

func startPublisher(s spec, dial dialer) (*publisher, error) {
	p, err := loadPayload(s.Payload)
	if err != nil {
		return nil, err
	}
	p.workflows = s.Folders
	space, err := subjects.New(subjects.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	nc, err := dial()
	if err != nil {
		return nil, fmt.Errorf("connect the publisher: %w", err)
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("connect the publisher: %w", err)
	}
	return &publisher{process: process{spec: s}, nc: nc, js: js, space: space, payload: p}, nil
}

func (p *publisher) do(ctx context.Context, r request) (reply, error) {
	switch r.Do {
	case "fill":
		_, err := p.publish(ctx, r, func(int) error { return nil })
		return reply{}, err
	case "pace":
		sent, err := p.pace(ctx, r)
		return reply{Sent: sent}, err
	case "retain":
		return reply{}, p.retain(ctx, r)
	}
	return p.process.do(r)
}

// pace publishes at fixed times, whatever becomes of the turns: an open loop.
func (p *publisher) pace(ctx context.Context, r request) ([]int64, error) {
	begin := time.Now()
	t := time.NewTimer(0)
	defer t.Stop()
	return p.publish(ctx, r, func(n int) error {
		if n == 0 { // the clock starts when the bodies are ready
			begin = time.Now()
			return nil
		}
		wait := time.Until(begin.Add(time.Duration(n) * time.Second / time.Duration(r.Rate)))
		if wait <= 0 {
			return nil
		}
		t.Reset(wait)
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// publishTimeout bounds the wait for a confirmation: beyond it something hangs.
const publishTimeout = time.Minute

// publish publishes turns without waiting for one before the next, then waits until all are
// stored. It returns when each was published.
func (p *publisher) publish(ctx context.Context, r request, before func(n int) error) ([]int64, error) {
	messages := make([]*nats.Msg, r.Count)
	for n := range messages {
		i := r.From + n
		body, err := p.payload.body(i)
		if err != nil {
			return nil, err
		}
		id := turnID(i)
		messages[n] = &nats.Msg{
			Subject: p.space.In(subjects.DefaultPool, events.KindStructuredOutputReady, id.App, p.payload.workflows.of(i), id.Chat), Data: body,
		}
	}
	sent := make([]int64, r.Count)
	futures := make([]jetstream.PubAckFuture, r.Count)
	for n, m := range messages {
		if err := before(n); err != nil {
			return nil, err
		}
		sent[n] = time.Now().UnixNano()
		var err error
		if futures[n], err = p.js.PublishMsgAsync(m, jetstream.WithStallWait(publishTimeout)); err != nil {
			return nil, fmt.Errorf("publish turn %d: %w", r.From+n, err)
		}
	}
	for n, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return nil, fmt.Errorf("publish turn %d: %w", r.From+n, err)
		case <-time.After(publishTimeout):
			return nil, errors.New("publish: no confirmation in a minute")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return sent, nil
}

func (p *publisher) close() error {
	p.nc.Close()
	return nil
}
