package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/throttle"
)

// erase settles a message that held a secret answer: its bytes are overwritten before it is acknowledged.
// If that fails, the message is redelivered after again, and the journal has its outcome; with an again of 0
// it is acknowledged all the same.
func (w *Worker) erase(d *inbox.Delivery, again time.Duration) {
	err := jsapi.Delete(context.Background(), w.nc, d.Stream, d.Seq)
	switch {
	case err == nil:
		d.Ack()
	case again > 0:
		w.lines.Log(context.Background(), w.c.Logger, time.Now(), "erased again", "", throttle.Several, slog.LevelWarn,
			"a secret answer could not be erased from the inbound stream; it is retried", "seq", d.Seq, "err", err)
		d.Nak(again)
	default:
		w.lines.Log(context.Background(), w.c.Logger, time.Now(), "not erased", "", throttle.Several, slog.LevelError,
			"a secret answer could not be erased from the inbound stream: the server's files may hold it until they are compacted", "seq", d.Seq, "err", err)
		d.Ack()
	}
}
