package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn/events"
)

// rawFlow is the physical limit of any design that stores two events a turn: consume, two
// pipelined publishes, plain ack once both are confirmed. It claims nothing, decodes nothing
// and keeps no goroutine waiting: the confirmations drive it.
type rawFlow struct {
	*baseline

	inbox string // with the dot
	slots []rawSlot
	free  chan int
	fatal failure
}

// rawSlot is one turn in flight. It is used again only when both confirmations are in, so
// a confirmation always finds its turn.
type rawSlot struct {
	reply   string
	msg     jetstream.Msg
	pending int // only touched by confirm once the turn is published
}

func newRaw(b *baseline) *rawFlow {
	f := &rawFlow{
		baseline: b, inbox: b.nc.NewInbox() + ".", slots: make([]rawSlot, b.inFlight),
		free: make(chan int, b.inFlight), fatal: make(failure, 1),
	}
	for i := range f.slots {
		f.slots[i].reply = f.inbox + strconv.Itoa(i)
		f.free <- i
	}
	return f
}

// Run implements flow.
func (f *rawFlow) Run(ctx context.Context) error {
	sub, err := f.nc.Subscribe(f.inbox+"*", f.confirm)
	if err != nil {
		return fmt.Errorf("subscribe to confirmations: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return fmt.Errorf("subscribe to confirmations: %w", err)
	}
	return f.consume(ctx, f.fatal, func(i int, m jetstream.Msg) {
		select {
		case n := <-f.free:
			f.publish(n, i, m)
		case <-ctx.Done():
		}
	})
}

func (f *rawFlow) publish(n, i int, m jetstream.Msg) {
	slot := &f.slots[n]
	slot.msg, slot.pending = m, 2
	err := f.nc.PublishRequest(f.subject(i, events.KindToolCall), slot.reply, f.call)
	if err == nil {
		err = f.nc.PublishRequest(f.subject(i, events.KindToolResponse), slot.reply, f.response)
	}
	if err != nil {
		f.fatal.set("raw: publish", err)
	}
}

// confirm takes the confirmation of one publish.
func (f *rawFlow) confirm(m *nats.Msg) {
	n, err := strconv.Atoi(m.Subject[len(f.inbox):])
	if err != nil || n < 0 || n >= len(f.slots) {
		return
	}
	if len(m.Data) == 0 || bytes.Contains(m.Data, []byte(`"error"`)) {
		f.fatal.set("raw: publish refused", errors.New(string(m.Data)))
		return
	}
	slot := &f.slots[n]
	if slot.pending--; slot.pending > 0 {
		return
	}
	if err := slot.msg.Ack(); err != nil {
		f.fatal.set("raw: ack", err)
		return
	}
	f.free <- n
}
