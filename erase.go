package oneturn

import (
	"time"

	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/inbox"
)

// erase settles a message that held a secret answer: its bytes go before it is acknowledged. If
// they cannot, it comes back, and the journal knows that it is done.
func (w *Worker) erase(d *inbox.Delivery) {
	err := handlers.EraseMessage(w.nc, idempotency.Lease{Stream: d.Stream, Seq: d.Seq})
	switch {
	case err == nil:
		d.Ack()
	case time.Since(d.Stored) < handlers.EraseFor:
		w.c.Logger.Warn("a secret answer could not be erased from the inbound stream; it is tried again", "seq", d.Seq, "err", err)
		d.Nak(handlers.ErasePause)
	default:
		w.c.Logger.Error("a secret answer could not be erased from the inbound stream: the server's files may hold it until they are compacted",
			"seq", d.Seq, "err", err)
		d.Ack()
	}
}
