package sim

import (
	"time"

	"github.com/oneturn/oneturn/inbox"
)

// owned is how long a worker takes a delivery for its own: the real rule of package inbox, and beside
// it what is true.
type owned struct {
	own  inbox.Ownership
	beat time.Duration // when its last heartbeat was sent in time
	gone bool          // there was none for a whole ack wait
}

// since is the time by the monotonic clocks of all processes.
func (w *world) since() time.Duration { return w.now.Sub(worldBegins) }

// receive begins to own a delivery of the message.
func (t *thread) receive() {
	t.gone, t.beat = false, t.w.since()
	t.own.Receive(t.beat)
}

// keep sends the heartbeats of a process that goes on: they are in time. One that stood still sends
// none before its ticker comes round.
func (t *thread) keep() {
	if !t.p.late && !t.gone {
		t.receive()
	}
}

// overdue reports whether a whole ack wait has passed since the last heartbeat that was in time.
func (t *thread) overdue() bool {
	t.keep()
	if t.w.since()-t.beat > ackWait {
		t.gone = true
	}
	return t.gone
}

// owns reports whether the worker takes the delivery for its own.
func (t *thread) owns() bool {
	t.keep()
	return !t.own.Lost(t.w.since(), ackWait)
}

// fresh is what the worker believes: heartbeats that got lost on their way do not show.
func (t *thread) fresh() bool {
	t.keep()
	return !t.lost && t.own.Fresh(t.w.since(), ackWait)
}

// tick is the ticker of a process that stood still: what it has lost ends, and the rest gets its
// heartbeats.
func (p *process) tick() {
	p.w.tracef("%s sends heartbeats again", p.name)
	for _, t := range p.threads {
		gone := t.overdue()
		if t.owns() {
			t.own.Beat(p.w.since(), p.w.since(), ackWait)
			if !gone {
				t.beat = p.w.since()
			}
		} else if !t.lost {
			t.forfeit()
		}
	}
	p.late = false
}

// forfeit ends what goes on only while the delivery is held.
func (t *thread) forfeit() {
	t.w.tracef("%s learns that it has lost #%d/%d", t.p.name, t.lease.Seq, t.lease.Delivery)
	t.lost = true
	t.lose(inbox.ErrLeaseLost)
}
