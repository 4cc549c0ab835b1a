package inbox

import (
	"time"

	"github.com/nats-io/nats.go"
)

// drain stops pulling, naks what no handler has begun, and waits for the handlers.
func (in *Inbox) drain(sub *nats.Subscription, stop func()) {
	in.nakAll()
	in.nakDelayed()
	// Drained, not unsubscribed: what has arrived by now is still received, and nak'ed.
	drained := sub.StatusChanged(nats.SubscriptionClosed)
	if err := sub.Drain(); err == nil {
		select {
		case <-drained:
		case <-time.After(time.Second): // a lost connection never confirms
		}
	}
	in.mu.Lock()
	in.sub = nil
	in.mu.Unlock()
	done := make(chan struct{})
	go func() {
		in.handlers.Wait()
		close(done)
	}()
	for _, wait := range []time.Duration{in.o.SoftStop, in.o.HardStop} {
		t := time.NewTimer(wait)
		select {
		case <-done:
			t.Stop()
			return
		case <-t.C:
			stop()
		}
	}
	in.o.Logger.Warn("handlers still run after the drain; their messages will be redelivered", "held", in.Held())
	in.letGo()
	select {
	case <-done:
	case <-time.After(time.Second): // the context has ended, but a tool may ignore it
	}
}

// nakAll returns all that no handler has begun to the server immediately, whether or not a slot is free: another
// worker may have one. What arrives later is nak'ed by receive.
func (in *Inbox) nakAll() {
	in.mu.Lock()
	in.draining.Store(true) // nothing is queued or begun after this
	var waiting []*Delivery
	for {
		d := in.queue.pop()
		if d == nil {
			break
		}
		waiting = append(waiting, d)
	}
	in.mu.Unlock()
	for _, d := range waiting {
		d.Nak(0)
	}
}

// letGo ends every lease: no more heartbeats are sent, so that writes of unknown outcome
// have to end too.
func (in *Inbox) letGo() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range in.held {
		d.cancel(ErrLeaseLost)
	}
}
