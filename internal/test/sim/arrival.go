package sim

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
)

// maxSent is how much lies in the buffers of a connection at most.
const maxSent = 3

// sent is what the queue has sent to a worker and the worker has not received: it lies in the buffers of the
// connection, in order.
type sent struct {
	msg   *nats.Msg
	m     *message // nil for a status
	lease idempotency.Lease
	at    time.Time
}

// receive has the queue send a message to a worker, which receives it now or some time later.
func (p *process) receive(m *message) {
	w := p.w
	m.delivered++
	m.leased, m.last, m.touched, m.holder = true, m.lease(), w.now, nil
	p.pulls[0].n--
	if len(p.sent) == 0 {
		p.in.Probe() // as often as the worker does it, the last answer is not much older
	}
	p.send(sent{&nats.Msg{Subject: m.subject, Header: m.header, Data: m.body, Reply: m.reply(), Sub: &nats.Subscription{}}, m, m.lease(), w.now})
}

// send sends something to a worker.
func (p *process) send(s sent) {
	if len(p.sent) > 0 || s.m != nil && p.w.strike(LateArrival, 8) {
		p.w.tracef("%s is sent %s", p.name, s.lease)
		p.sent = append(p.sent, s)
		return
	}
	p.arrives(s)
}

// reads reports whether a worker can receive what lies in the buffers of its connection.
func (p *process) reads() bool { return p.up && !p.paused && len(p.sent) > 0 }

// read has a worker receive the first of what lies in the buffers of its connection.
func (p *process) read() {
	if p.w.chance(1, 2) {
		p.in.Probe()
	}
	first := p.sent[0]
	p.sent = p.sent[1:]
	p.arrives(first)
}

// arrives has a worker receive something.
func (p *process) arrives(s sent) {
	w, m := p.w, s.m
	if m == nil {
		p.in.Receive(s.msg)
		return
	}
	w.tracef("%s receives #%d/%d, sent %s ago", p.name, m.seq, s.lease.Delivery, w.now.Sub(s.at))
	earlier, current := p.holding(m), m.leased && m.last == s.lease
	t := &thread{w: w, p: p, m: m, lease: s.lease, known: len(w.store.log), beat: s.at, late: w.now.After(s.at), looked: map[checkpoint]int{}, refused: map[string]uint64{}}
	if current {
		m.holder = t
	}
	if len(p.threads) == 0 {
		p.nextBeat = w.now
	}
	p.threads = append(p.threads, t)
	t.d = p.in.Receive(s.msg)
	if t.d != nil {
		return
	}
	p.threads = p.threads[:len(p.threads)-1]
	switch {
	case !t.settled && earlier != nil: // the run that has it keeps it in progress
		if current {
			m.holder = earlier
		}
		earlier.receive(s.at)
	case m.holder == t: // it was requeued, and that was lost, or it was too old for that
		m.holder = nil
	}
}
