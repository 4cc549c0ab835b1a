package python

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// The processes of one version of a workflow: which call gets which (acquire, pick, dispatch), how reservations change
// while calls wait for people (releaseSlot, reacquireSlot), and when unused ones end (reap, supersede, close).

// blockingFor is how long a function that was seen to block the event loop has a process for itself.
const blockingFor = 5 * time.Minute

// closing is why a call of a closed pool fails.
const closing = "the worker is shutting down; the tool was not entered"

// group holds the children of one version of a workflow and assigns them to calls, first come
// first served. acquire reserves a child, release returns it; pick starts one when none suits (slot.go) and there is
// room. Children that must not be used again leave it by replace.go.
type group struct {
	size      int
	idleAfter time.Duration
	spawn     func(*group) *child
	counts    *counters
	environ   environment       // of its processes
	sources   map[string][]byte // Python files to run instead of those on the disk
	calls     int               // guarded by the pool: a group with calls is not forgotten

	mu      sync.Mutex
	current []*slot          // children that take calls
	all     map[*child]*slot // these and the retired ones that still run
	waiters []*waiter
	async   map[string]bool      // functions known to be async, as file:function
	blocks  map[string]time.Time // functions that block the event loop, and until when they count as such
	old     bool                 // there is a newer version: children end with the calls that are left
	closed  bool
}

func newGroup(size int, idleAfter time.Duration, counts *counters, spawn func(*group) *child) *group {
	return &group{
		size: size, idleAfter: idleAfter, spawn: spawn, counts: counts,
		all: map[*child]*slot{}, async: map[string]bool{}, blocks: map[string]time.Time{},
	}
}

// acquire reserves a child for a call of a function. Every reservation is returned by
// [group.release], which the child calls at the end of the call.
func (g *group) acquire(ctx context.Context, op, function string) (*child, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, toolError(op, closing)
	}
	var s *slot
	if len(g.waiters) == 0 {
		s = g.pick(function)
	}
	if s != nil {
		g.mu.Unlock()
		return s.child, nil
	}
	w := &waiter{function: function, grant: make(chan *slot, 1)}
	g.waiters = append(g.waiters, w)
	g.mu.Unlock()
	select {
	case s = <-w.grant:
	case <-ctx.Done():
		return nil, g.leave(ctx, op, w)
	}
	if s == nil {
		return nil, toolError(op, closing)
	}
	return s.child, nil
}

// leave removes a waiter whose call's context ended.
func (g *group) leave(ctx context.Context, op string, w *waiter) error {
	g.mu.Lock()
	g.waiters = slices.DeleteFunc(g.waiters, func(other *waiter) bool { return other == w })
	g.dispatch()
	g.mu.Unlock()
	select {
	case s := <-w.grant:
		if s != nil {
			g.release(s.child, false)
		}
	default:
	}
	return tools.Ended(ctx, op, "while the call waited for a free Python process; the tool was not entered")
}

// shares reports whether calls of a function run next to others.
func (g *group) shares(function string) bool {
	return g.async[function] && !time.Now().Before(g.blocks[function])
}

// pick reserves a child now, starting one if there is room, or returns nil.
func (g *group) pick(function string) *slot {
	shared := g.shares(function)
	var best *slot
	how := unsuitable
	for _, s := range g.current {
		if h := s.suits(function, shared); h > how || h == how && h != unsuitable && s.load < best.load {
			best, how = s, h
		}
	}
	if how <= otherFunctions && len(g.current) < g.size {
		best = &slot{child: g.spawn(g)}
		g.current = append(g.current, best)
		g.all[best.child] = best
		g.counts.started.Add(1)
	}
	if best == nil {
		return nil
	}
	if best.idle != nil {
		best.idle.Stop()
	}
	switch {
	case best.load == 0:
		best.function = function
	case best.function != function:
		best.function = ""
	}
	best.load++
	best.exclusive = !shared
	return best
}

// dispatch assigns children to waiters, in order.
func (g *group) dispatch() {
	for len(g.waiters) > 0 {
		s := g.pick(g.waiters[0].function) // it may have proved to be async since it came
		if s == nil {
			return
		}
		g.waiters[0].grant <- s
		g.waiters = slices.Delete(g.waiters, 0, 1)
	}
}

// release returns a reservation; replace retires the child as well.
func (g *group) release(c *child, replace bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.all[c]
	if s == nil {
		return // it has ended
	}
	s.load--
	if replace || c.withheld.Load() {
		g.retire(s)
	}
	if s.load == 0 {
		s.exclusive = false
	}
	if s.unused() && s.retired {
		c.end("it was retired")
	}
	g.dispatch()
	switch {
	case !s.unused() || s.retired:
	case g.old:
		g.retire(s)
		s.end("its workflow has changed")
	default:
		s.idle = time.AfterFunc(g.idleAfter, func() { g.reap(s) })
	}
}

// releaseSlot frees the slot of a call that waits for an answer, unless so many wait in
// the child already that the call keeps it.
func (g *group) releaseSlot(c *child) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.all[c]
	if s == nil || s.waiting >= maxWaiting {
		return false
	}
	s.load--
	s.waiting++
	if s.load == 0 {
		s.exclusive = false
	}
	g.dispatch()
	return true
}

// reacquireSlot takes a slot for a call that continues, even if there is none: it is in that child.
func (g *group) reacquireSlot(c *child, async bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.all[c]
	if s == nil {
		return // it has ended
	}
	s.waiting--
	s.load++
	s.exclusive = s.exclusive || !async
}

// markAsync records that a function which a child has entered is async, so that the child takes
// other calls.
func (g *group) markAsync(c *child, function string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.all[c]
	if s == nil || s.retired || g.async[function] && !s.exclusive { // it takes no others
		return
	}
	g.async[function] = true
	if !g.shares(function) {
		return
	}
	s.exclusive = false
	g.dispatch()
}

// stall records that a call of a function blocks the event loop of a child, or that the loop
// runs again.
func (g *group) stall(c *child, function string, blocked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if blocked && function != "" {
		g.blocks[function] = time.Now().Add(blockingFor)
	}
	if s := g.all[c]; s != nil {
		s.blocked = blocked
		g.dispatch()
	}
}

// reap ends a child that has been idle for long.
func (g *group) reap(s *slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.unused() {
		g.retire(s)
		s.end("it was idle")
	}
}

// supersede records that there is a newer version. Idle children end; calls that run, wait
// or arrive later for this version still use it.
func (g *group) supersede() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.old = true
	for _, s := range slices.Clone(g.current) {
		if s.unused() {
			g.retire(s)
			s.end("its workflow has changed")
		}
	}
}

// over reports whether no process of a version that was superseded is left.
func (g *group) over() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.old && len(g.all) == 0
}

func (g *group) retireAll() {
	for _, s := range slices.Clone(g.current) {
		g.retire(s)
		if s.unused() {
			s.end("it was retired")
		}
	}
}

// close refuses new calls, ends the idle children, and the children of running calls when ctx ends.
func (g *group) close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	for _, w := range g.waiters {
		w.grant <- nil
	}
	g.waiters = nil
	g.retireAll()
	running := make([]*child, 0, len(g.all))
	for c := range g.all {
		running = append(running, c)
	}
	g.mu.Unlock()
	var err error
	for _, c := range running {
		select {
		case <-c.gone:
			continue
		case <-ctx.Done():
		}
		err = &events.Error{Code: events.CodeToolError, Op: "close Python", Msg: "tools still ran and were killed", Err: ctx.Err()}
		c.kill("the worker shut down")
		<-c.gone
	}
	return err
}
