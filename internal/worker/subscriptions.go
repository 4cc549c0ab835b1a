package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/apiserver"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/internal/variables"
)

// pollQuestions makes runs that wait for people read their answers after each reconnect: live copies may be
// lost.
func (w *Worker) pollQuestions(ctx context.Context, h *handlers.Handlers) {
	back := w.nc.StatusChanged(nats.CONNECTED)
	defer w.nc.RemoveStatusListener(back)
	for {
		select {
		case _, ok := <-back:
			if !ok {
				return
			}
			h.PollQuestions()
		case <-ctx.Done():
			return
		}
	}
}

// listen subscribes to cancels and to the ends of questions, and serves the request API.
func (w *Worker) listen(reader *query.Reader, contexts *variables.Variables, h *handlers.Handlers) (stop func(), err error) {
	sub, err := w.nc.Subscribe(w.space.EventsOfKind(events.RecordCancel), func(m *nats.Msg) {
		if key, ok := w.space.EventKey(m.Subject); ok {
			h.CancelSeen(key)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("oneturn worker: subscribe to cancels: %w", err)
	}
	// The stored message may have to wait for a slot; its live copy stops a running tool now.
	requests, err := w.nc.QueueSubscribe(w.space.InKind(w.c.Pool, events.KindCancel), w.space.APIName(), func(m *nats.Msg) {
		h.HandleCancelCopy(m.Subject, m.Data)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("oneturn worker: subscribe to cancels: %w", err), sub.Unsubscribe())
	}
	acks, err := w.nc.Subscribe(w.space.Acks(), func(m *nats.Msg) {
		if ack, ok := w.space.EventRecord(m.Subject); ok {
			h.AckSeen(ack)
		}
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("oneturn worker: subscribe to acks: %w", err), sub.Unsubscribe(), requests.Unsubscribe())
	}
	server, err := apiserver.Serve(w.nc, apiserver.Options{
		Space: w.space, Reader: reader, Variables: contexts, Bindings: w.Bindings, Logger: w.c.Logger, MayReply: h.MayReply, Ready: w.Ready,
	})
	if err != nil {
		return nil, errors.Join(err, sub.Unsubscribe(), requests.Unsubscribe(), acks.Unsubscribe())
	}
	return func() {
		if err := errors.Join(server.Stop(), sub.Unsubscribe(), requests.Unsubscribe(), acks.Unsubscribe()); err != nil {
			w.c.Logger.Debug("subscriptions had already ended", "err", err)
		}
	}, nil
}
