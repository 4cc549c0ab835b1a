package handlers

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/serverclock"
	"github.com/oneturn/oneturn/subjects"
)

// Message is one delivery from the inbound stream.
type Message struct {
	Subject string
	Header  nats.Header
	Data    []byte
	Lease   idempotency.Lease // stream, sequence and delivery number
	Stored  time.Time         // when the stream took it
	// Private says that the message may hold a secret, as an answer may: its bytes are in no dead
	// letter.
	Private bool
	// Held ends when the delivery is no longer ours: JetStream may have given the message to
	// another worker. Writes are retried until then.
	Held context.Context //nolint:containedctx // the life of the message, not of a call
	// Fresh reports whether the delivery was received or kept in progress recently enough
	// that it may claim a turn.
	Fresh func() bool
	// AckWait is that of the consumer. Nil: it is not known.
	AckWait func() time.Duration
	// Refresh sends a heartbeat for the message now. Nil: nobody sends heartbeats early.
	Refresh func()
	Slot    run.Slot // what it takes of the worker, nil if it is not counted

	// tools ends when the tools of the worker have to stop, see [Handlers.Handle].
	tools context.Context //nolint:containedctx // the life of the worker, not of a call

	// clock is the server's when the message was received; the zero value stands for the clock of the
	// process.
	clock serverclock.Reading

	// secret says that the message may hold the answer to a secret question. Who handles it and
	// acknowledges it has it erased as well.
	secret bool
	// asksSecret says that it answers a question that is known to be secret.
	asksSecret bool
	// sealed says that its data came sealed, closed that it still is: the worker lacks its key.
	sealed, closed bool

	size      int       // of its data as it was delivered
	arrived   time.Time // when the stream took it last, which is Stored unless it was put aside
	byWorker  bool      // its subject is one on which only workers publish: what its headers say of its age is true
	deferrals int       // how often it was put aside
	before    uint64    // deliveries before that

	turns   []subjects.Key      // that it may be the lease of, as far as that is known
	origins []idempotency.Lease // the deliveries that were put aside, the last one at the end
}

// Disposition says what becomes of a message.
type Disposition struct {
	Do    Do
	Delay time.Duration // for Nak; for Erase after a failure, where 0 stands for no other try
}

// Do is the verb of a [Disposition].
type Do int

// What can become of a message.
const (
	// Leave it: the delivery is not ours to settle. It comes back when its lease lapses.
	Leave Do = iota
	// Ack it: it is dealt with.
	Ack
	// Nak it: deliver it again, to anybody, after the delay.
	Nak
	// Erase it: it is dealt with, and its bytes must not stay in the stream's files. See
	// [jsapi.Delete].
	Erase
)

func ack() Disposition { return Disposition{Do: Ack} }

func leave() Disposition { return Disposition{Do: Leave} }

func nakAfter(d time.Duration) Disposition { return Disposition{Do: Nak, Delay: d} }
