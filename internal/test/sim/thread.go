package sim

import (
	"slices"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/subjects"
)

// A thread is one delivery of a message to a worker, from the queue until it is settled or lost, with the fibers that handle it.
// The invariants of a delivery (check_reports.go, lease.go) read its fields.

// checkpoint is what a thread reads of a turn: records of a kind.
type checkpoint struct {
	key  subjects.Key
	kind string
}

// thread is one delivery in the hands of a worker.
type thread struct {
	w     *world
	p     *process
	m     *message
	lease idempotency.Lease

	fibers       []*fiber // the handler first
	timer        *fiber   // the one of them that parks the turn
	timers       []*timer
	slotReleased bool     // it takes no slot
	entry        *entry   // the run of the tool, nil before it is entered
	steps        []*entry // the same, of a program
	listed       uint64   // how many records the journal had when the thread last listed a turn

	since        time.Time // when a handler began it
	known        int       // how many records the journal had then
	manifests    int       // the number of manifests of its worker by then
	asked        bool      // whether its message may be deferred
	noRoom       bool      // its message must not be deferred
	sawStaleRead bool      // one of its reads gave the journal as it was before

	read int // how many records the journal had when the thread last listed the records of a turn
	old  int // how many of its next reads a leader answers that was replaced after that

	looked map[checkpoint]int // the same, by turn and kind of records

	refused map[string]uint64 // how many it had when a create was refused, by the key of the record

	d       *inbox.Delivery
	late    bool      // it lay in the buffers of the connection, and may seem older than it is
	begun   bool      // a handler has it
	settled bool      // it sent what settles the message
	beat    time.Time // when its last heartbeat was sent in time
	gone    bool      // there was none for a whole ack wait
	stale   bool      // it was the worker's no longer when a handler began it, and is not again
	lapsed  bool      // the queue has given the message up, whether the worker knows or not
	lost    bool      // the worker knows
}

// Release implements [inbound.Slot].
func (t *thread) Release() {
	t.slotReleased = true
	t.d.Release()
}

// Reacquire implements [inbound.Slot].
func (t *thread) Reacquire() {
	t.slotReleased = false
	t.d.Reacquire()
}

// over reports whether the handler has returned.
func (t *thread) over() bool { return t.begun && t.fibers[0].over }

// tidy forgets the fibers that are over, but for the handler.
func (t *thread) tidy() {
	if t.timer != nil && t.timer.over {
		t.timer = nil
	}
	t.fibers = append(t.fibers[:1], slices.DeleteFunc(t.fibers[1:], func(x *fiber) bool { return x.over })...)
}

// kill ends all that the delivery does. The handler is the last: the others may hold what it needs.
func (t *thread) kill() {
	for _, x := range slices.Backward(t.fibers) {
		x.kill()
	}
}
