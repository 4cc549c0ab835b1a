package sim

import (
	"context"
	"sync"
	"time"

	"github.com/oneturn/oneturn/internal/run"
)

// timing is the [run.Timing] of a schedule: waits end when the scheduler lets them.
type timing struct{ w *world }

// AfterFunc implements [run.Timing].
func (g timing) AfterFunc(_ time.Duration, f func()) run.Timer {
	t := g.w.active.t
	x := &timer{t: t, f: f, armed: true}
	t.timers = append(t.timers, x)
	return x
}

// Wait implements [run.Timing].
func (g timing) Wait(call, held context.Context, wake, over <-chan struct{}, _ time.Duration) (idle bool) {
	x := g.w.active
	before := x.inHost
	x.inHost = false
	due := func() bool {
		select {
		case <-over:
			return true
		default:
			return len(wake) > 0 || call.Err() != nil || held.Err() != nil
		}
	}
	patient := true
	x.idle = func() { patient = false }
	x.await("waits for an answer", func() bool { return !patient || due() })
	x.idle = nil
	x.inHost = before
	idle = !due()
	if len(wake) > 0 {
		<-wake
	}
	return idle
}

// Go implements [run.Timing].
func (g timing) Go(group *sync.WaitGroup, f func()) {
	x := g.w.active
	group.Add(1)
	g.w.begin(x.p, x.t, func(*fiber) {
		defer group.Done()
		g.w.yield("start of a step")
		f()
	})
}

// Await implements [run.Timing].
func (g timing) Await(ready func() bool) { g.w.active.await("waits for a step", ready) }

// Lock implements [run.Timing].
func (g timing) Lock(gate *sync.RWMutex) {
	free := func() bool {
		locked := gate.TryLock()
		if locked {
			gate.Unlock()
		}
		return locked
	}
	if !free() { // a host of another step is at work
		g.w.active.await("waits for the gate", free)
	}
	gate.Lock()
}

// timer is a [run.Timer].
type timer struct {
	t     *thread
	f     func()
	armed bool
}

// Stop implements [run.Timer].
func (x *timer) Stop() bool {
	armed := x.armed
	x.armed = false
	return armed
}

// Reset implements [run.Timer].
func (x *timer) Reset(time.Duration) bool {
	armed := x.armed
	x.armed = true
	return armed
}

// due reports whether the timer may end now: it will need the gate of its run.
func (x *timer) due() bool {
	if !x.armed || x.t.timer != nil || x.t.over() {
		return false
	}
	for _, f := range x.t.fibers {
		if f.inHost && !f.over {
			return false
		}
	}
	return true
}

// fire has the timer end.
func (x *timer) fire() {
	x.armed = false
	w := x.t.w
	w.tracef("%s #%d/%d a timer ends", x.t.p.name, x.t.lease.Seq, x.t.lease.Delivery)
	x.t.timer = w.start(x.t.p, x.t, func(*fiber) { x.f() })
}
