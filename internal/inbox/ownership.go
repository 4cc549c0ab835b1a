package inbox

import (
	"sync/atomic"
	"time"
)

// Ownership is how long a delivery belongs to the process that received it: an ack wait from a time
// after which the server sent it, or from the last heartbeat that reached the server in time. Only the monotonic clock of the process
// counts: a working connection does not show what the server has done with the message
// meanwhile. A delivery that is lost stays lost.
//
// Times are durations since an instant that the caller chooses. The zero value was sent at that
// instant. It is safe for concurrent use.
type Ownership struct {
	beat atomic.Int64 // when the last heartbeat that counts was sent, or after which the delivery was, in nanoseconds
	lost atomic.Bool
}

// Receive begins to own a delivery, or a newer delivery of the same message, that was sent after a time.
func (o *Ownership) Receive(since time.Duration) {
	if !o.lost.Load() {
		since = max(since, time.Duration(o.beat.Load()))
	}
	o.beat.Store(int64(since))
	o.lost.Store(false)
}

// Beat records a heartbeat that was sent at a time and confirmed by now. It does not count when the
// delivery is lost by now: it may have arrived too late.
func (o *Ownership) Beat(sent, now, wait time.Duration) {
	if !o.Lost(now, wait) {
		o.beat.Store(max(o.beat.Load(), int64(sent)))
	}
}

// Lost reports whether the server may have delivered the message to another worker.
func (o *Ownership) Lost(now, wait time.Duration) bool {
	if o.age(now) > wait {
		o.lost.Store(true)
	}
	return o.lost.Load()
}

// Fresh reports whether the delivery may begin something, such as claim a turn: half of the wait is
// left for that.
func (o *Ownership) Fresh(now, wait time.Duration) bool {
	return !o.Lost(now, wait) && o.age(now) <= wait/2
}

func (o *Ownership) age(now time.Duration) time.Duration {
	return now - time.Duration(o.beat.Load())
}
