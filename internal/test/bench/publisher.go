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

// The publisher is the role that publishes turns and answers at fixed times, whatever they result in, and notes when
// each was published.

// publisher is the role that publishes turns, numbered from 0.
type publisher struct {
	process

	nc      *nats.Conn
	js      jetstream.JetStream
	space   subjects.Space
	payload payload
	asking  payload // of turns whose tool asks
}

func startPublisher(s spec, dial dialer) (*publisher, error) {
	p, err := loadPayload(s.Payload)
	if err != nil {
		return nil, err
	}
	p.workflows = s.Folders
	asking, err := loadPayload(askPayload)
	if err != nil {
		return nil, err
	}
	asking.workflows = s.Folders
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
	return &publisher{process: process{spec: s}, nc: nc, js: js, space: space, payload: p, asking: asking}, nil
}

func (p *publisher) do(ctx context.Context, r request) (reply, error) {
	switch r.Do {
	case "fill":
		_, err := p.publish(ctx, r, func(int) error { return nil })
		return reply{}, err
	case "pace":
		sent, err := p.pace(ctx, r)
		return reply{Sent: sent}, err
	case "answer":
		sent, err := p.answer(ctx, r)
		return reply{Sent: sent}, err
	case "retain":
		return reply{}, p.retain(ctx, r)
	case "leave":
		return reply{}, p.leave(ctx, r)
	}
	return p.process.do(r)
}

// pace publishes at fixed times, whatever the turns result in: an open loop.
func (p *publisher) pace(ctx context.Context, r request) ([]int64, error) {
	return p.publish(ctx, r, steady(ctx, r.Rate))
}

// steady returns a function that waits until the time of a message has come.
func steady(ctx context.Context, rate int) func(n int) error {
	var begin time.Time
	return func(n int) error {
		if n == 0 { // the clock starts when the bodies are ready
			begin = time.Now()
			return nil
		}
		return await(ctx, begin.Add(time.Duration(n)*time.Second/time.Duration(rate)))
	}
}

// await waits until a time.
func await(ctx context.Context, at time.Time) error {
	wait := time.Until(at)
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publishTimeout bounds the wait for a confirmation: beyond it something hangs.
const publishTimeout = time.Minute

// publish publishes turns without waiting for one before the next, then waits until all are
// stored. It returns when each was published.
func (p *publisher) publish(ctx context.Context, r request, before func(n int) error) ([]int64, error) {
	messages := make([]*nats.Msg, r.Count)
	for n := range messages {
		i := r.From + n
		body, err := p.body(r, n)
		if err != nil {
			return nil, err
		}
		id := turnID(i)
		messages[n] = &nats.Msg{
			Subject: p.space.In(subjects.DefaultPool, events.KindStructuredOutputReady, id.App, p.payload.workflows.of(i), id.Chat), Data: body,
		}
	}
	return p.send(ctx, messages, before)
}

// body is the event of one of the turns that are asked for.
func (p *publisher) body(r request, n int) ([]byte, error) {
	if !r.Ask {
		return p.payload.body(r.From + n)
	}
	asking := p.asking
	if r.Until > 0 {
		asking.data = withUntil(asking.data, r.Until+until(n, r.Count))
	}
	return asking.body(r.From + n)
}

// until is how long after the first the time of a question is over: all are in one second.
func until(n, count int) int64 { return int64(n) * int64(time.Second) / int64(count) }

// send publishes messages without waiting for one before the next, then waits until all are
// stored. It returns when each was published.
func (p *publisher) send(ctx context.Context, messages []*nats.Msg, before func(n int) error) ([]int64, error) {
	sent := make([]int64, len(messages))
	futures := make([]jetstream.PubAckFuture, len(messages))
	for n, m := range messages {
		if err := before(n); err != nil {
			return nil, err
		}
		sent[n] = time.Now().UnixNano()
		var err error
		if futures[n], err = p.js.PublishMsgAsync(m, jetstream.WithStallWait(publishTimeout)); err != nil {
			return nil, fmt.Errorf("publish %s: %w", messages[n].Subject, err)
		}
	}
	for n, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return nil, fmt.Errorf("publish %s: %w", messages[n].Subject, err)
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
