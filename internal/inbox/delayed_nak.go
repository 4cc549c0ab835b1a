package inbox

import "time"

// Bounds of delayed naks.
const (
	maxDelayed = 4096
	delayShare = 4 // of the ack wait: for a longer delay the server waits
)

// delayNak holds a message whose nak has a short delay until the delay is over, and reports whether it does. It takes
// no slot. The server could wait, but it resets its one timer for all redeliveries with each such nak: hundreds a
// second postpone that timer, the messages of workers that died wait with them, and then all arrive at the same
// moment.
func (d *Delivery) delayNak(delay time.Duration) bool {
	if !d.in.keep(d, delay) {
		return false
	}
	d.cancel(nil)
	d.in.pull(false)
	return true
}

func (in *Inbox) keep(d *Delivery, delay time.Duration) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.delayNaks || delay <= 0 || delay > in.ackWait()/delayShare || len(in.delayed) >= maxDelayed || in.held[d.Seq] != d || in.draining.Load() {
		return false
	}
	in.handled(d)
	in.delayed[d] = time.AfterFunc(delay, func() { in.delayOver(d) })
	return true
}

// delayOver naks a message whose delay is over, unless a drain has.
func (in *Inbox) delayOver(d *Delivery) {
	in.mu.Lock()
	_, delayed := in.delayed[d]
	delete(in.delayed, d)
	in.mu.Unlock()
	if delayed {
		d.Nak(0)
	}
}

// nakDelayed naks all delayed messages immediately.
func (in *Inbox) nakDelayed() {
	in.mu.Lock()
	delayed := in.delayed
	in.delayed = map[*Delivery]*time.Timer{}
	in.mu.Unlock()
	for d, timer := range delayed {
		timer.Stop()
		d.Nak(0)
	}
}
