package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deliver"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/retry"
)

// How turnctl retry publishes a retry and waits until a worker has claimed it. Redrive publishes in the same way (publish).

// publishRetry publishes the event of a retry.
func (s *server) publishRetry(ctx context.Context, e *events.StructuredOutputReady, pool string) (uint64, error) {
	body, err := events.EncodeTurn(e, time.Now())
	if err != nil {
		return 0, fmt.Errorf("retry: %w", err)
	}
	m := &nats.Msg{Subject: s.space.In(pool, events.KindRetry, e.App, e.Workflow, e.Chat), Data: body, Header: nats.Header{}}
	m.Header.Set(nats.MsgIdHdr, events.MsgID(e.InboundKind(), e.TurnID, events.Fingerprint(e)))
	ack, err := s.publish(ctx, m)
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		return 0, fmt.Errorf("retry: no stream stores %s: run `turnctl provision`: %w", m.Subject, err)
	}
	if err != nil {
		return 0, fmt.Errorf("retry: publish to %s: %w", m.Subject, err)
	}
	return ack.Sequence, nil
}

// publish publishes a message, for the time of a request. It may be stored more than once.
func (s *server) publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return deliver.Publish(ctx, s.js, m)
}

// retryPoll is how often the journal is read for the claim of a retry.
const retryPoll = 100 * time.Millisecond

// awaitRetry waits for the claim of a retry, which has the reason if it is refused, for the time of a request.
func (s *server) awaitRetry(ctx context.Context, r *retryReport, id events.TurnID) error {
	waiting, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		if err := s.readRetry(ctx, r, id); err != nil || r.State != retryPublished {
			return err
		}
		if pause.For(waiting, retryPoll) != nil {
			return context.Cause(ctx)
		}
	}
}

// readRetry reads how far a retry is.
func (s *server) readRetry(ctx context.Context, r *retryReport, id events.TurnID) error {
	turn, err := idempotency.LoadEnds(ctx, s.journal, keyOfTurn(id))
	if err != nil {
		return err
	}
	past, err := retry.FromTurn(turn, nil)
	if err != nil {
		return err
	}
	r.note(past)
	return nil
}
