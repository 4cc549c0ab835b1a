package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbox"
)

// The connection between a worker's inbox and the simulated queue: pulls, acknowledgements, heartbeats and the reads of
// the consumer's settings, each of which may get lost or be late.

const consumer = "workers"

// link is the connection of a worker to the queue, as its inbox sees it.
type link struct{ p *process }

var _ inbox.Link = link{}

// pulled is a pull at the queue.
type pulled struct {
	n  int
	by time.Time // when it expires
}

// IsConnected implements [inbox.Link].
func (l link) IsConnected() bool { return !l.p.cut }

// FlushTimeout implements [inbox.Link].
func (l link) FlushTimeout(time.Duration) error {
	if l.p.cut {
		return errNoAnswer
	}
	return nil
}

// PublishRequest implements [inbox.Link]: it asks for messages.
func (l link) PublishRequest(_, _ string, data []byte) error {
	var r struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("simulated: %w", err)
	}
	l.p.pulls = append(l.p.pulls, pulled{r.Batch, l.p.w.now.Add(r.Expires)})
	return nil
}

// Publish implements [inbox.Link]: it settles a message, or keeps it in progress.
func (l link) Publish(reply string, data []byte) error {
	w := l.p.w
	seq, _ := strconv.Atoi(strings.Split(reply, ".")[5])
	m := w.queue[seq-1]
	t := l.p.holding(m)
	verb, options, _ := bytes.Cut(data, []byte(" "))
	switch string(verb) {
	case "+WPI":
		if l.p.cut {
			return nil // what was just sent is lost
		}
		if !t.overdue() {
			t.receive(w.now)
		}
		m.touched = w.now
		return nil
	case "+ACK":
		known := t.known
		l.p.settle(func() { m.ack(t, known) })
	case "-NAK":
		var o struct {
			Delay time.Duration `json:"delay"`
		}
		if len(options) > 0 {
			if err := json.Unmarshal(options, &o); err != nil {
				return fmt.Errorf("simulated: %w", err)
			}
		}
		late := t.overdue()
		l.p.settle(func() { m.nak(t, late, o.Delay) })
	}
	t.settled = true
	return nil
}

// settle sends what settles a message; nothing confirms it.
func (p *process) settle(send func()) {
	w := p.w
	switch {
	case p.cut && w.chance(1, 2), w.strike(LostAck, 4):
	case p.cut, w.strike(LateAck, 4):
		w.flying = append(w.flying, send)
	default:
		send()
	}
}

// asks reports whether the queue has a pull of the worker to send messages to.
func (p *process) asks() bool {
	if !p.up || p.paused || p.cut || len(p.sent) >= maxSent {
		return false
	}
	for len(p.pulls) > 0 && (p.pulls[0].n == 0 || !p.w.now.Before(p.pulls[0].by)) {
		expired := p.pulls[0]
		p.pulls = p.pulls[1:]
		if expired.n > 0 {
			status := nats.Header{"Status": {"408"}, "Nats-Pending-Messages": {strconv.Itoa(expired.n)}}
			p.send(sent{msg: &nats.Msg{Header: status}})
		}
	}
	if len(p.pulls) == 0 && !p.draining {
		p.in.Pull()
	}
	return len(p.pulls) > 0
}

// holding is the delivery of a message in the hands of a worker: one at most, but for one that comes
// just now.
func (p *process) holding(m *message) *thread {
	for _, t := range slices.Backward(p.threads) {
		if t.m == m {
			return t
		}
	}
	return nil
}

// reply is the subject of what settles the newest delivery of a message.
func (m *message) reply() string {
	return fmt.Sprintf("$JS.ACK.%s.%s.%d.%d.%d.%d.0", stream, consumer, m.delivered, m.seq, m.seq, m.stored.UnixNano())
}

// begin has a free slot take the oldest message that waits for one.
func (p *process) begin() {
	d := p.in.Next()
	p.notice()
	if d == nil {
		return
	}
	lease := idempotency.Lease{Stream: stream, Seq: d.Seq, Delivery: d.Delivered}
	for _, t := range p.threads {
		if t.lease == lease && !t.begun {
			t.begun, t.since, t.known, t.stale = true, p.w.now, len(p.w.store.log), t.overdue()
			t.manifests = len(p.had)
			p.w.start(p, t, func(x *fiber) { p.handle(t, x) })
			return
		}
	}
	p.w.violatef("%s begins %s, which it does not hold", p.name, lease)
}

// waiting reports whether a message waits for a slot.
func (p *process) waiting() bool {
	return slices.ContainsFunc(p.threads, func(t *thread) bool { return !t.begun })
}
