// Package searchbudget bounds the time for which tenants have the server search its index of names.
//
// A request with a wildcard has the server match every name below the wildcard's place, whatever it
// finds, and store nothing meanwhile: all tenants bear its cost. So a [Budget] measures such requests
// and charges their time to the tenant that caused them.
package searchbudget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// What a tenant may use in one process.
const (
	// Burst is the time for which searches of a tenant may run until it has to wait.
	Burst = time.Second
	// resumeAt is what a tenant that had to wait may have left of that time when it searches again: one
	// request may need several searches.
	resumeAt = Burst / 2
	// Share is the part of the time for which its searches may run after that: one in so many.
	Share = 10
	// perByte is the time that it takes to send what was found.
	perByte = 10 * time.Nanosecond
	// free is the time of a search that is not counted.
	free = time.Millisecond
)

// maxTenants is how many tenants are remembered before those are forgotten that may search again as
// much as ever.
const maxTenants = 1_000

// A round trip to the server does not count as search: it is measured so often and taken off.
const (
	roundTripEvery = 10 * time.Second
	longestTrip    = time.Second // that is waited for
)

// BusyError refuses a search of a tenant that has used up its time.
type BusyError struct {
	After time.Duration // when to try again
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("busy: the requests of this tenant have the server search too much: try again after %d s, or ask for less: one chat, one turn, or a question with its run_id", e.Seconds())
}

// Seconds returns the whole seconds to wait, 1 at least.
func (e *BusyError) Seconds() int { return max(1, int(math.Ceil(e.After.Seconds()))) }

// A search that waits for its reply while the server or this process is paused, or too busy to do anything, has the server search
// nothing. So that a pause or a flood uses up the budgets of no tenant, a long search is checked regularly, and the time since the last
// check counts only if the check comes in time and a round trip is quick.
const (
	checkEvery = 50 * time.Millisecond
	quick      = 25 * time.Millisecond // is a check that is so late, and a round trip of so long
)

// Budget bounds the searches of each tenant in this process. It is safe for concurrent use. A nil Budget refuses nothing.
type Budget struct {
	now func() time.Time
	// ping makes a round trip to the server that waits for no search; nil: it takes no time.
	ping func(ctx context.Context) error
	// connections counts the connections to the server so far; nil: there is one.
	connections func() uint64

	mu      sync.Mutex
	tenants map[string]*tenant
	trip    time.Duration // of a round trip
	tripAt  time.Time     // when it was measured last
}

// tenant is what a tenant has used. All but its turn is guarded by the budget.
type tenant struct {
	turn      chan struct{} // holds one while a search of the tenant runs
	inside    int           // those that run or wait for their turn
	used      time.Duration
	at        time.Time // when used was true
	throttled bool
}

// New returns an unused budget of searches over a connection, nil for a server that is near and never lost. Round trips are measured over
// pings, which may be the same connection unless searches are direct gets: the server handles the requests of a connection one by one.
func New(nc, pings *nats.Conn) *Budget {
	if nc == nil {
		return newBudget(nil)
	}
	b := newBudget(pings.FlushWithContext)
	b.connections = func() uint64 { return nc.Stats().Reconnects }
	return b
}

// newBudget returns an unused budget. Ping makes a round trip to the server; nil is for a server that is near.
func newBudget(ping func(ctx context.Context) error) *Budget {
	return &Budget{now: time.Now, ping: ping, tenants: map[string]*tenant{}}
}

// Do searches for a tenant, one search at a time, and charges the time that it takes. It returns a
// *BusyError, and does not search, when the tenant has used up its budget or its turn does not come
// before ctx ends.
func (b *Budget) Do(ctx context.Context, name string, search func() error) error {
	return b.Read(ctx, name, func() (int, error) { return 0, search() })
}

// Read is Do of a search that returns how many bytes it has found: it takes time to send them, which is
// not charged.
func (b *Budget) Read(ctx context.Context, name string, search func() (bytes int, err error)) error {
	if b == nil {
		_, err := search()
		return err
	}
	t := b.enter(name)
	defer b.leave(name, t)
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return context.Cause(ctx)
		}
		return &BusyError{}
	}
	defer func() { <-t.turn }()
	if after := b.delay(t); after > 0 {
		return &BusyError{after}
	}
	trip := b.roundTrip(ctx)
	watch := b.watch(ctx)
	sent := 0
	defer func() { b.charge(t, watch.stop()-trip-time.Duration(sent)*perByte) }()
	var err error
	sent, err = search()
	return err
}

// stopwatch measures the time of a search that counts.
type stopwatch struct {
	b          *Budget
	connection uint64
	end        context.CancelFunc // of checks

	mu     sync.Mutex
	counts time.Duration // until seen
	seen   time.Time     // when the last check ended
	timer  *time.Timer
}

// watch begins to measure.
func (b *Budget) watch(ctx context.Context) *stopwatch {
	w := &stopwatch{b: b, seen: b.now(), connection: b.connection()}
	checks, end := context.WithCancel(context.WithoutCancel(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = end
	w.timer = time.AfterFunc(checkEvery, func() { w.check(checks) })
	return w
}

// connection identifies the connection to the server.
func (b *Budget) connection() uint64 {
	if b.connections == nil {
		return 0
	}
	return b.connections()
}

// check counts the time since the last check, unless something but the search took it. The time of the check itself does not count.
func (w *stopwatch) check(ctx context.Context) {
	begun := w.b.now()
	responds := w.b.ping == nil || w.b.ping(ctx) == nil
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	now := w.b.now()
	if since := begun.Sub(w.seen); responds && now.Sub(begun) <= quick && since <= checkEvery+quick {
		w.counts += since
	}
	w.seen = now
	w.timer.Reset(checkEvery)
}

// stop ends the measurement, and returns the time that counts: nothing if the connection was lost meanwhile.
func (w *stopwatch) stop() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	w.timer.Stop()
	if w.b.connection() != w.connection {
		return 0
	}
	return w.counts + min(w.b.now().Sub(w.seen), checkEvery)
}

// Charge adds to what a tenant has used.
func (b *Budget) Charge(name string, took time.Duration) {
	if b == nil {
		return
	}
	t := b.enter(name)
	defer b.leave(name, t)
	b.charge(t, took)
}

func (b *Budget) enter(name string) *tenant {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tenants[name]
	if t == nil {
		b.forget()
		t = &tenant{turn: make(chan struct{}, 1)}
		b.tenants[name] = t
	}
	t.inside++
	return t
}

// leave forgets a tenant that has used nothing.
func (b *Budget) leave(name string, t *tenant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.inside--; t.idle(b.now()) {
		delete(b.tenants, name)
	}
}

// forget makes room for another tenant.
func (b *Budget) forget() {
	if len(b.tenants) < maxTenants {
		return
	}
	now := b.now()
	for name, t := range b.tenants {
		if t.idle(now) {
			delete(b.tenants, name)
		}
	}
}

// delay returns how long the tenant has to wait, 0 if it may search.
func (b *Budget) delay(t *tenant) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := t.left(b.now())
	switch {
	case left > Burst:
		t.throttled = true
	case left <= resumeAt:
		t.throttled = false
	}
	if !t.throttled {
		return 0
	}
	return (left - resumeAt) * Share
}

func (b *Budget) charge(t *tenant, took time.Duration) {
	if took < free {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	t.used, t.at = t.left(now)+took, now
}

// left is what counts of the time that was used.
func (t *tenant) left(now time.Time) time.Duration {
	return max(t.used-now.Sub(t.at)/Share, 0)
}

func (t *tenant) idle(now time.Time) bool { return t.inside == 0 && t.left(now) == 0 }

// roundTrip returns the time that a request takes which searches nothing. A measurement may have to
// wait for a search of another tenant: it counts only as far as the time has not doubled.
func (b *Budget) roundTrip(ctx context.Context) time.Duration {
	b.mu.Lock()
	begun := b.now()
	if b.ping == nil || !b.tripAt.IsZero() && begun.Sub(b.tripAt) < roundTripEvery {
		defer b.mu.Unlock()
		return b.trip
	}
	b.tripAt = begun
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longestTrip)
	defer cancel()
	if b.ping(ctx) != nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trip = min(b.now().Sub(begun), 2*b.trip+free)
	return b.trip
}
