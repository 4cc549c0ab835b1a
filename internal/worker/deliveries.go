package worker

import (
	"context"

	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/inbox"
)

// handle passes a delivery to the handlers and settles it by their disposition.
func (w *Worker) handle(ctx context.Context, h *handlers.Handlers, d *inbox.Delivery) {
	w.settle(d, h.Handle(ctx, message(d)))
}

// message is a delivery as handlers see it.
func message(d *inbox.Delivery) *inbound.Message {
	return &inbound.Message{
		Subject: d.Msg.Subject, Header: d.Msg.Header, Data: d.Msg.Data, Stored: d.Stored,
		Lease: idempotency.Lease{Stream: d.Stream, Seq: d.Seq, Delivery: d.Delivered},
		Held:  d.Held(), Fresh: d.Fresh, AckWait: d.AckWait, Refresh: d.Refresh, Slot: d,
	}
}

func (w *Worker) settle(d *inbox.Delivery, disposition inbound.Disposition) {
	switch disposition.Do {
	case inbound.Erase:
		w.erase(d, disposition.Delay)
	case inbound.Ack:
		d.Ack()
		if failpoint.Enabled {
			failpoint.Hit(failpoint.AfterAck, "", d.Msg.Subject)
		}
	case inbound.Nak:
		d.Nak(disposition.Delay)
	case inbound.Leave:
		d.Leave()
	}
}
