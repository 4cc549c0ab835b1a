package inbox

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/internal/failpoint"
)

// ErrLeaseLost is the cause of the end of [Delivery.Held]: no sign of life could be sent for
// a whole ack wait, so the server may have given the message to another worker.
var ErrLeaseLost = errors.New("the lease of the message is lost")

// Delivery is one delivery of a message. Exactly one of Ack, Nak and Leave settles it.
type Delivery struct {
	Msg       *nats.Msg
	Stream    string
	Seq       uint64    // sequence in the stream
	Delivered uint64    // 1 for the first time
	Stored    time.Time // when the stream took it

	in      *Inbox
	reply   string
	start   time.Time
	beat    atomic.Int64 // last sign of life, nanoseconds since in.epoch (monotonic)
	away    bool         // takes no slot; guarded by in.mu
	wasAway bool

	held   context.Context //nolint:containedctx // the life of the delivery
	cancel context.CancelCauseFunc
}

// Held ends, with cause [ErrLeaseLost], when the lease is lost.
func (d *Delivery) Held() context.Context { return d.held }

// Fresh reports whether the message was received or kept in progress within half the ack
// wait. An older delivery must not claim anything: this process may have been paused.
func (d *Delivery) Fresh() bool { return d.held.Err() == nil && d.age() <= d.in.o.AckWait/2 }

func (d *Delivery) age() time.Duration { return d.in.now() - time.Duration(d.beat.Load()) }

// What settles a message, or keeps it.
const (
	ackBody      = "+ACK"
	progressBody = "+WPI"
	nakBody      = "-NAK"
)

// Ack removes the message from the queue. The acknowledgement is not confirmed: if it gets
// lost, the message comes back and the journal knows that it is done.
func (d *Delivery) Ack() { d.settle(ackBody) }

// Nak gives the message back, to be delivered to any worker after the delay.
func (d *Delivery) Nak(delay time.Duration) {
	body := nakBody
	if delay > 0 {
		body += ` {"delay": ` + strconv.FormatInt(int64(delay), 10) + `}`
	}
	d.settle(body)
}

// Leave does nothing: the message comes back when its ack wait lapses.
func (d *Delivery) Leave() { d.settle("") }

func (d *Delivery) settle(body string) {
	if body != "" {
		if err := d.in.nc.Publish(d.reply, []byte(body)); err != nil {
			d.in.o.Logger.Debug("a message could not be settled; it comes back", "seq", d.Seq, "err", err)
		}
	}
	d.cancel(nil)
	d.in.settled(d)
}

// alive sends a sign of life. It is counted only when the connection took it.
func (d *Delivery) alive() {
	if failpoint.Before(failpoint.Heartbeat) != nil {
		d.beat.Store(int64(d.in.now())) // sent, and lost on its way
		return
	}
	if d.in.nc.IsConnected() && d.in.nc.Publish(d.reply, []byte(progressBody)) == nil {
		d.beat.Store(int64(d.in.now()))
		return
	}
	if d.age() > d.in.o.AckWait {
		d.cancel(ErrLeaseLost)
	}
}
