package inbox

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Two loops keep and end leases: beats sends a heartbeat for each delivery several times in an ack wait, expireLeases
// ends those for which none reached the server in time. Both follow the ack wait of the consumer (setConfig).

// reread is how often the configuration of the consumer is read again by default.
const reread = time.Minute

// beatsAWait is how many heartbeats are sent in an ack wait.
const beatsAWait = 3

// checksAWait is how many times in an ack wait lost leases are looked for.
const checksAWait = 8

// ackWait is the effective ack wait: the smaller one of the last two that were read, so that
// heartbeats are early enough while a change of it is under way.
func (in *Inbox) ackWait() time.Duration {
	return time.Duration(min(in.ackWaits[0].Load(), in.ackWaits[1].Load()))
}

// setConfig records the configuration that the consumer has now.
func (in *Inbox) setConfig(c jetstream.ConsumerConfig) {
	if in.o.OnConfig != nil {
		in.o.OnConfig(c)
	}
	before, wait := in.ackWait(), c.AckWait
	if wait <= 0 {
		return
	}
	in.ackWaits[0].Store(in.ackWaits[1].Load())
	in.ackWaits[1].Store(int64(wait))
	if wait < before {
		in.o.Logger.Warn("the ack wait of the consumer was lowered while workers run; heartbeats follow", "consumer", in.o.Consumer, "before", before, "ack_wait", wait)
		select {
		case in.beatNow <- struct{}{}:
		default:
		}
	}
}

// beats sends heartbeats every third of the ack wait until done.
func (in *Inbox) beats(done <-chan struct{}) {
	timer := time.NewTimer(in.ackWait() / beatsAWait)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-in.beatNow:
		case <-timer.C:
		}
		in.keepAlive()
		timer.Reset(in.ackWait() / beatsAWait)
	}
}

// keepAlive sends a heartbeat for every message that was not just received: one that is younger
// than an eighth of the ack wait has time until the next round. They count from when they were
// sent, once the server has answered: a link that is stalled accepts everything and delivers nothing.
func (in *Inbox) keepAlive() {
	sent, wait := in.now(), in.ackWait()
	in.mu.Lock()
	due := make([]*Delivery, 0, len(in.held))
	for _, d := range in.held {
		if d.own.age(sent) > wait/8 && !d.own.Lost(sent, wait) {
			due = append(due, d)
		}
	}
	in.mu.Unlock()
	if len(due) == 0 || !in.link.IsConnected() {
		return
	}
	for _, d := range due {
		if err := d.progress(); err != nil {
			in.o.Logger.Debug("heartbeat not sent; it is retried", "seq", d.Seq, "err", err)
			return
		}
	}
	if err := in.flush(wait); err != nil {
		in.o.Logger.Debug("heartbeats are not confirmed; they are sent again", "messages", len(due), "err", err)
		return
	}
	for _, d := range due {
		d.own.Beat(sent, in.now(), wait)
	}
}

// every calls do several times in an ack wait, until done.
func (in *Inbox) every(part time.Duration, done <-chan struct{}, do func()) {
	for {
		timer := time.NewTimer(in.ackWait() / part)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
			do()
		}
	}
}

// expireLeases ends the leases that are lost now. A delivery that no handler has begun is dropped: the
// message is handled when it is delivered again. It sends nothing, so that no connection can block it.
func (in *Inbox) expireLeases() {
	in.mu.Lock()
	defer in.mu.Unlock()
	now, wait := in.now(), in.ackWait()
	for _, d := range in.held {
		if d.own.Lost(now, wait) {
			d.cancel(ErrLeaseLost)
			if !d.begun {
				delete(in.held, d.Seq)
			}
		}
	}
}
