package sim

import (
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A delivery belongs to a worker until a whole ack wait has passed since its receipt, or since the last heartbeat
// that reached the queue in time. This file has the true state of leases; package inbox has what a worker assumes.

// reread is how often workers read the ack wait, as package inbox does by default.
const reread = time.Minute

// since is the time by the monotonic clocks of all processes.
func (w *world) since() time.Duration { return w.now.Sub(worldBegins) }

// beats reports whether a worker holds something and sends heartbeats for it, or is about to receive something: it reads
// the ack wait then, too.
func (p *process) beats() bool {
	return p.up && !p.paused && !p.late && len(p.threads)+len(p.sent) > 0
}

// pass lets time pass. Workers that run send their heartbeats meanwhile, and read the ack wait. The timers of one that
// stood still fire before that: other things it does may come first, but take no time.
func (w *world) pass(d time.Duration) {
	for _, p := range w.processes {
		if p.up && !p.paused && p.late {
			p.tick()
		}
	}
	for end := w.now.Add(d); ; {
		next := end
		for _, p := range w.processes {
			if p.beats() && p.nextBeat.Before(next) {
				next = p.nextBeat
			}
		}
		w.now = later(w.now, next)
		for _, p := range w.processes {
			if p.beats() {
				p.keepLeases()
			}
		}
		if !w.now.Before(end) {
			return
		}
	}
}

// keepLeases is what an inbox does in the background.
func (p *process) keepLeases() {
	for range 2 { // that many values count
		if !p.cut && !p.nextRead.After(p.w.now) {
			p.in.SetConfig(jetstream.ConsumerConfig{AckWait: p.w.ackWait})
			p.waits = [2]time.Duration{p.waits[1], p.w.ackWait}
			p.nextRead = later(p.nextRead.Add(reread), p.w.now.Add(-reread))
			p.nextBeat = p.w.now
		}
	}
	if !p.nextBeat.After(p.w.now) {
		p.nextBeat = p.w.now.Add(p.in.Beat())
		p.in.Pull()
	}
	p.expireLeases()
}

// expireLeases has a worker notice what it has lost.
func (p *process) expireLeases() {
	p.in.ExpireLeases()
	p.notice()
}

// notice has a worker notice what its inbox has lost.
func (p *process) notice() {
	for _, t := range slices.Backward(p.threads) {
		switch {
		case t.d.Held().Err() == nil || t.lost:
		case !t.begun:
			p.w.tracef("%s forgets #%d/%d, which it has not begun", p.name, t.lease.Seq, t.lease.Delivery)
			p.forget(t)
		default:
			p.w.tracef("%s learns that it has lost #%d/%d", p.name, t.lease.Seq, t.lease.Delivery)
			t.lost = true
		}
	}
}

// tick is what a process that stood still does when it continues.
func (p *process) tick() {
	p.w.tracef("%s sends heartbeats again", p.name)
	p.late, p.nextBeat = false, p.w.now
	p.keepLeases()
}

// receive notes another delivery of the message, or a heartbeat, that was sent at a time.
func (t *thread) receive(sent time.Time) {
	t.gone, t.beat = false, later(t.beat, sent)
	t.stale = t.stale && t.overdue()
}

// overdue reports whether a whole ack wait has passed since the last heartbeat that was in time, as
// long as the worker must know that it is.
func (t *thread) overdue() bool {
	patience := t.w.patience()
	if !t.p.nextRead.After(t.w.now) { // it could not read the ack wait yet, as when it was cut off
		patience = max(patience, min(t.p.waits[0], t.p.waits[1]))
	}
	if t.w.now.Sub(t.beat) > patience {
		t.gone = true
	}
	return t.gone
}

// patience is the ack wait that workers may still go by.
func (w *world) patience() time.Duration {
	if w.now.Sub(w.lowered) <= reread+w.before {
		return max(w.before, w.ackWait)
	}
	return w.ackWait
}

// changeAckWait has an operator set another ack wait.
func (w *world) changeAckWait() {
	next := []time.Duration{6 * time.Second, usualAckWait, time.Minute}[w.rng.IntN(3)]
	if next < w.ackWait {
		w.before, w.lowered = max(w.ackWait, w.patience()), w.now
	}
	w.ackWait = next
	w.tracef("the ack wait is %s", next)
}
