package inbox

import (
	"sync"
	"time"
)

// probesAWait is how many pings are sent in an ack wait: their answers bound how old arrivals are.
const probesAWait = 16

// arrivals bounds from below when the server sent what is received. A message may lie in the buffers of a
// connection for any time, while a link stalls or the process is paused, and the server may have delivered it
// to another worker meanwhile. What is received after the answer to a ping was sent after that ping. The
// client reads messages into a queue from which they are received, so those that are in the queue when
// the answer is noticed may be older than it.
type arrivals struct {
	mu    sync.Mutex
	count uint64        // how much was received
	since time.Duration // what is received from now on was sent after that
	next  *answered     // bounds what is received after the messages that were queued then
}

// answered is a ping that the server has answered.
type answered struct {
	sent  time.Duration
	after uint64 // what is received later than so many was sent after it
}

// receive counts something that is received, and returns a time after which it was sent.
func (a *arrivals) receive() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	if a.next != nil && a.count > a.next.after {
		a.since, a.next = max(a.since, a.next.sent), nil
	}
	return a.since
}

// answer records the answer to a ping that was sent at a time. Queued is how much the client had read and not
// passed to receive yet, counted after the answer was read.
func (a *arrivals) answer(sent time.Duration, queued int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case queued <= 0:
		a.since, a.next = max(a.since, sent), nil
	case a.next == nil:
		a.next = &answered{sent, a.count + uint64(queued)}
	}
}

// flush waits until the server confirms that it has received all that was sent.
func (in *Inbox) flush(timeout time.Duration) error {
	sent := in.now()
	if err := in.link.FlushTimeout(timeout); err != nil {
		return err // the caller reports what was sent
	}
	if queued, receiving := in.unread(); receiving {
		in.arrived.answer(sent, queued)
	}
	return nil
}

// pending returns how much the client has read and not passed to receive yet, the one that is being received
// included. It reports false when nothing is received any more.
func (in *Inbox) pending() (int, bool) {
	in.mu.Lock()
	sub := in.sub
	in.mu.Unlock()
	if sub == nil {
		return 0, true
	}
	n, _, err := sub.Pending()
	return n, err == nil
}

// probe sends a ping. An answer of any age within an ack wait bounds something: a limit below the
// round trip of a server that is far away would let every arrival be as old as the process.
func (in *Inbox) probe() {
	if !in.link.IsConnected() {
		return
	}
	if err := in.flush(in.ackWait()); err != nil {
		in.o.Logger.Debug("no answer to a ping: messages that arrive now may be old", "err", err)
	}
}
