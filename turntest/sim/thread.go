package sim

import (
	"context"
	"runtime"

	"github.com/oneturn/oneturn/idempotency"
)

// thread is one delivery in the hands of a worker: a goroutine that runs only while the
// scheduler says so. The engine runs the tool in a second goroutine while the first waits
// for it, so the two count as one.
type thread struct {
	w     *world
	p     *process
	m     *message
	lease idempotency.Lease

	held   context.Context //nolint:containedctx // the life of the delivery, not of a call
	lose   context.CancelCauseFunc
	lapsed bool // the queue has given the message up, whether the worker knows or not
	lost   bool // the worker knows

	at     string // what it is about to do
	waits  bool   // for a person, in memory, and sees only what is new
	seen   int    // news when it looked last
	flight func() // the write that it was sending when it is killed there
	turn   chan bool
	parked chan bool
	dead   bool
	over   bool
}

type threadKey struct{}

func threadOf(ctx context.Context) *thread {
	t, _ := ctx.Value(threadKey{}).(*thread)
	return t
}

// start runs f as a thread, up to its first yield.
func (t *thread) start(f func()) {
	t.turn, t.parked = make(chan bool), make(chan bool)
	go func() {
		defer func() { t.parked <- false }()
		t.yield("start")
		f()
	}()
	<-t.parked
}

// yield gives control back to the scheduler until it is this thread's turn again. A thread
// that was killed in the meantime ends here.
func (t *thread) yield(at string) {
	if !t.dead {
		t.at = at
		t.parked <- true
		t.dead = !<-t.turn
	}
	if t.dead {
		runtime.Goexit()
	}
}

// step lets the thread run to its next yield.
func (t *thread) step() { t.resume(true) }

// kill ends the thread where it is: nothing after its last yield happens.
func (t *thread) kill() {
	if !t.over {
		t.resume(false)
	}
}

func (t *thread) resume(alive bool) {
	t.turn <- alive
	t.over = !<-t.parked
}
