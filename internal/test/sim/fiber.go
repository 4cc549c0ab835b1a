package sim

import "runtime"

// fiber is a line of execution in a worker: a goroutine that runs only while the scheduler lets
// so. The handler of a delivery is one, and the engine runs the tool in another goroutine while
// the first waits for it, so the two count as one. Each further question that is open at the
// same time has a separate one, and so has each timer.
type fiber struct {
	w *world
	p *process
	t *thread // nil for what belongs to no delivery

	at     string      // what it is about to do
	ready  func() bool // what it waits for, nil when it can continue
	idle   func()      // ends its wait for an answer, nil when it is in none
	leave  func()      // has its tool give up that wait, nil for one that does not
	inHost bool        // it is in a call to the host, so that it may hold the gate of the run
	flight func()      // the write that it was sending when it is killed there

	turn   chan bool
	parked chan bool
	dead   bool
	over   bool
}

// start runs f as a fiber, up to its first yield.
func (w *world) start(p *process, t *thread, f func(*fiber)) *fiber {
	return w.begin(p, t, func(x *fiber) {
		x.yield("start")
		f(x)
	})
}

// begin is start with an f that yields before it does anything.
func (w *world) begin(p *process, t *thread, f func(*fiber)) *fiber {
	x := &fiber{w: w, p: p, t: t, turn: make(chan bool), parked: make(chan bool)}
	if t != nil {
		t.fibers = append(t.fibers, x)
	} else {
		p.fibers = append(p.fibers, x)
	}
	before := w.active
	w.active = x
	go func() {
		defer func() { x.parked <- false }()
		f(x)
	}()
	<-x.parked
	w.active = before
	return x
}

// yield returns control to the scheduler until it is the turn of the fiber that runs now. One
// that was killed in the meantime ends here.
func (w *world) yield(at string) { w.active.yield(at) }

func (x *fiber) yield(at string) {
	if !x.dead {
		x.at = at
		x.parked <- true
		x.dead = !<-x.turn
	}
	if x.dead {
		runtime.Goexit()
	}
}

// await is yield until ready.
func (x *fiber) await(at string, ready func() bool) {
	x.ready = ready
	x.yield(at)
	x.ready = nil
}

// runnable reports whether the fiber can continue.
func (x *fiber) runnable() bool {
	return !x.over && (x.ready == nil || x.ready()) && !x.shut()
}

// shut reports whether a timer of the run has the gate, which the fiber may be about to need.
func (x *fiber) shut() bool { return x.t != nil && x.t.timer != nil && x.t.timer != x }

// kill ends the fiber where it is: nothing after its last yield happens.
func (x *fiber) kill() {
	if !x.over {
		x.resume(false)
	}
}

func (x *fiber) resume(alive bool) {
	before := x.w.active
	x.w.active = x
	x.turn <- alive
	x.over = !<-x.parked
	x.w.active = before
	for range 2 { // contexts that the step has ended may end others, in goroutines
		runtime.Gosched()
	}
}
