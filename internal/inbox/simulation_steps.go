package inbox

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Link is what an inbox needs of its connection to receive and settle messages. [nats.Conn] is the
// real one.
type Link interface {
	Publish(subject string, data []byte) error
	PublishRequest(subject, reply string, data []byte) error
	FlushTimeout(timeout time.Duration) error
	IsConnected() bool
}

// Steps is an inbox that does nothing by itself: its caller decides when a message arrives, when a
// handler takes one, and when what runs in the background of an [Inbox] is due. So a simulation can
// run it under any schedule. It is not for concurrent use; its deliveries are.
type Steps struct{ in *Inbox }

// NewSteps returns an inbox that receives from link and sends to it. Unread is how many of them lie in
// the buffers of the connection, now the time since any instant.
func NewSteps(link Link, unread func() int, now func() time.Duration, o Options) Steps {
	in := newInbox(link, "", now, o)
	in.unread = func() (int, bool) { return unread(), true }
	return Steps{in}
}

// Receive takes a message, or a status, from the server. It returns its delivery if that waits for a handler
// now: one that is handled here already, or comes in a drain, does not. The message may be as old as
// the last ping that the server has answered, see [Steps.Probe].
func (s Steps) Receive(m *nats.Msg) *Delivery { return s.in.receive(m) }

// Probe sends a ping.
func (s Steps) Probe() { s.in.probe() }

// Next returns the oldest delivery that waits for a handler, which has begun it then; nil if there is
// none.
func (s Steps) Next() *Delivery {
	s.in.mu.Lock()
	d, dropped := s.in.next()
	s.in.mu.Unlock()
	if dropped {
		s.in.pull(false)
	}
	return d
}

// Pull requests messages from the server, if there is room.
func (s Steps) Pull() { s.in.pull(false) }

// Beat sends the heartbeats that are due, and returns how long it is until the next ones.
func (s Steps) Beat() time.Duration {
	select {
	case <-s.in.beatNow:
	default:
	}
	s.in.keepAlive()
	return s.in.ackWait() / beatsAWait
}

// ExpireLeases ends the leases that are lost now.
func (s Steps) ExpireLeases() { s.in.expireLeases() }

// SetConfig records the configuration of the consumer as it was read.
func (s Steps) SetConfig(c jetstream.ConsumerConfig) { s.in.setConfig(c) }

// Drain naks what no handler has begun, and what arrives from now on.
func (s Steps) Drain() { s.in.nakAll() }
