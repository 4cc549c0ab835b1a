package inbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/internal/failpoint"
)

// A delivery is created when its message arrives (pull.go), keeps its lease by heartbeats and redeliveries (progress,
// again), and is settled once by its handler (Ack, Nak or Leave).

// ErrLeaseLost is the cause of the end of [Delivery.Held]: no heartbeat reached the server for a
// whole ack wait, so that it may have given the message to another worker.
var ErrLeaseLost = errors.New("the lease of the message is lost")

// Delivery is a message that this process owns, from one delivery of it to the next one to
// another process. Exactly one of Ack, Nak and Leave settles it.
type Delivery struct {
	Msg       *nats.Msg
	Stream    string
	Seq       uint64    // sequence in the stream
	Delivered uint64    // 1 for the first time
	Stored    time.Time // when the stream took it

	in    *Inbox
	start time.Duration          // by in.now
	own   Ownership              // by in.now
	reply atomic.Pointer[string] // of the newest delivery of the message to this process

	// Guarded by in.mu.
	begun       bool // by a handler
	returned    bool // the handler has
	released    bool // takes no slot
	wasReleased bool

	held   context.Context //nolint:containedctx // ends with the lease
	cancel context.CancelCauseFunc
}

// Held ends, with cause [ErrLeaseLost], when the lease is lost.
func (d *Delivery) Held() context.Context { return d.held }

// Fresh reports whether the message was received or kept in progress within half the ack
// wait. An older delivery must not claim anything: this process may have been paused.
func (d *Delivery) Fresh() bool {
	return d.held.Err() == nil && d.own.Fresh(d.in.now(), d.in.ackWait())
}

// AckWait is how long the server waits for a heartbeat of the delivery, as its consumer was read last.
func (d *Delivery) AckWait() time.Duration { return d.in.ackWait() }

// Acknowledgements of a message.
const (
	ackBody      = "+ACK"
	progressBody = "+WPI"
	nakBody      = "-NAK"
)

// Ack removes the message from the queue. The acknowledgement is not confirmed: if it gets
// lost, the message is redelivered and the journal knows that it is done.
func (d *Delivery) Ack() { d.settle(ackBody) }

// Nak returns the message to the queue, to be delivered to any worker after the delay. A delivery that is lost
// is left instead: the server accepts a nak of any delivery, and would redeliver a message that
// another worker owns.
func (d *Delivery) Nak(delay time.Duration) {
	if d.own.Lost(d.in.now(), d.in.ackWait()) {
		d.in.o.Logger.Debug("message not nak'ed: its lease is lost", "seq", d.Seq)
		d.Leave()
		return
	}
	if d.delayNak(delay) {
		return
	}
	body := nakBody
	if delay > 0 {
		body += ` {"delay": ` + strconv.FormatInt(int64(delay), 10) + `}`
	}
	d.settle(body)
}

// Leave does nothing: the message is redelivered when its ack wait expires.
func (d *Delivery) Leave() { d.settle("") }

func (d *Delivery) settle(body string) {
	if body != "" {
		if err := d.in.link.Publish(*d.reply.Load(), []byte(body)); err != nil {
			d.in.o.Logger.Debug("message not settled; it will be redelivered", "seq", d.Seq, "err", err)
		}
	}
	d.cancel(nil)
	d.in.settled(d)
}

// Refresh sends a heartbeat immediately. It is not confirmed, and does not extend the lease on this side. While the
// connection is lost nothing is sent: it would arrive when another worker may own the message.
func (d *Delivery) Refresh() {
	if !d.in.link.IsConnected() || d.own.Lost(d.in.now(), d.in.ackWait()) {
		return
	}
	if err := d.progress(); err != nil {
		d.in.o.Logger.Debug("a heartbeat could not be sent; the next one follows", "seq", d.Seq, "err", err)
	}
}

// progress sends a heartbeat.
func (d *Delivery) progress() error {
	if err := failpoint.Before(failpoint.Heartbeat); err != nil {
		return nil //nolint:nilerr // it was sent, and is lost on its way
	}
	if err := d.in.link.Publish(*d.reply.Load(), []byte(progressBody)); err != nil {
		return fmt.Errorf("heartbeat: %w", err)
	}
	return nil
}

// again renews the lease of a message by a newer delivery of it to this process, which was sent after a time. in.mu
// is held.
func (d *Delivery) again(reply string, since time.Duration) {
	d.reply.Store(&reply)
	d.own.Receive(since)
}
