package inbound

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
)

// Message is one delivery from the inbound stream.
type Message struct {
	Subject string
	Header  nats.Header
	Data    []byte
	Lease   idempotency.Lease // stream, sequence and delivery number
	Stored  time.Time         // when the stream took it
	// Private is set for a message that may hold a secret, as an answer may: its bytes are in no dead letter.
	Private bool
	// Held ends when the delivery is no longer this worker's: JetStream may have delivered the message to
	// another worker. Writes are retried until then.
	Held context.Context //nolint:containedctx // the life of the message, not of a call
	// Fresh reports whether the delivery was received or kept in progress recently enough
	// that it may claim a turn.
	Fresh func() bool
	// AckWait is the ack wait of the consumer. Nil: it is not known.
	AckWait func() time.Duration
	// Refresh sends a heartbeat for the message now. Nil: no heartbeats are sent early.
	Refresh func()
	Slot    Slot // of the worker's concurrency; nil if the message does not use one
}

// Slot is the part of the worker's concurrency that a message in handling uses.
type Slot interface {
	// Release frees the slot while the handler only waits; Reacquire takes one again and never blocks.
	Release()
	Reacquire()
}

// Disposition is how a message is settled.
type Disposition struct {
	Do    Do
	Delay time.Duration // for Nak; for Erase after a failure, where 0 stands for no other try
}

// Do is the verb of a [Disposition].
type Do int

// The ways to settle a message.
const (
	// Leave it: the delivery may be another worker's by now. It is redelivered when its lease lapses.
	Leave Do = iota
	// Ack it: it is handled.
	Ack
	// Nak it: deliver it again after the delay, to any worker.
	Nak
	// Erase it: it is handled, and its bytes must not stay in the files of the stream. See
	// [jsapi.Delete].
	Erase
)

// Acked acknowledges the message.
func Acked() Disposition { return Disposition{Do: Ack} }

// Left leaves the message to be redelivered when its lease lapses.
func Left() Disposition { return Disposition{Do: Leave} }

// NakAfter has the message delivered again after a delay.
func NakAfter(d time.Duration) Disposition { return Disposition{Do: Nak, Delay: d} }
