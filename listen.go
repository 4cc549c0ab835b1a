package oneturn

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
)

// lookAgain has runs that wait for people look whenever the connection is back: what would have
// woken them may be lost.
func (w *Worker) lookAgain(ctx context.Context, h *handlers.Handlers) {
	back := w.nc.StatusChanged(nats.CONNECTED)
	defer w.nc.RemoveStatusListener(back)
	for {
		select {
		case _, ok := <-back:
			if !ok {
				return
			}
			h.LookAgain()
		case <-ctx.Done():
			return
		}
	}
}

// listen subscribes to cancels and to the ends of questions, and serves the request API.
func (w *Worker) listen(search *journalSearches, h *handlers.Handlers) (stop func(), err error) {
	sub, err := w.nc.Subscribe(w.space.EventsOfKind(events.RecordCancel), func(m *nats.Msg) {
		if key, ok := w.space.EventKey(m.Subject); ok {
			h.CancelSeen(key)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("oneturn worker: subscribe to cancels: %w", err)
	}
	// The stored message may have to wait for a slot; its live copy stops a running tool now.
	wishes, err := w.nc.QueueSubscribe(w.space.InKind(w.c.Pool, events.KindCancel), w.space.APIName(), func(m *nats.Msg) {
		h.CancelWished(m.Subject, m.Data)
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
		return nil, errors.Join(fmt.Errorf("oneturn worker: subscribe to acks: %w", err), sub.Unsubscribe(), wishes.Unsubscribe())
	}
	api, err := serveAPI(w.nc, w.space, search, w.c.Logger, h.MayReply, w.Ready)
	if err != nil {
		return nil, errors.Join(err, sub.Unsubscribe(), wishes.Unsubscribe(), acks.Unsubscribe())
	}
	return func() {
		if err := errors.Join(api.stop(), sub.Unsubscribe(), wishes.Unsubscribe(), acks.Unsubscribe()); err != nil {
			w.c.Logger.Debug("subscriptions were gone already", "err", err)
		}
	}, nil
}
