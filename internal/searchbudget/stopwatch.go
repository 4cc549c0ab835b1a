package searchbudget

import (
	"context"
	"sync"
	"time"
)

// A round trip to the server does not count as search: it is measured so often and taken off.
const (
	roundTripEvery = 10 * time.Second
	longestTrip    = time.Second // that is waited for
)

// A search that waits for its reply while the server or this process is paused, or too busy to do anything, has the server search
// nothing. So that a pause or a flood uses up the budgets of no tenant, a long search is checked regularly, and the time since the last
// check counts only if the check comes in time and a round trip is quick.
const (
	checkEvery = 50 * time.Millisecond
	quick      = 25 * time.Millisecond // is a check that is so late, and a round trip of so long
)

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

// roundTrip returns the time that a request takes which searches nothing. A measurement may have to
// wait for a search of another tenant: it counts only as far as the time has not doubled. Without pings it may wait for anything, so
// the shortest one of a connection counts.
func (b *Budget) roundTrip(ctx context.Context) time.Duration {
	b.mu.Lock()
	begun := b.now()
	if b.trips == nil || !b.tripAt.IsZero() && begun.Sub(b.tripAt) < roundTripEvery {
		defer b.mu.Unlock()
		return b.trip
	}
	b.tripAt = begun
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, longestTrip)
	defer cancel()
	if b.trips(ctx) != nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	measured, connection := b.now().Sub(begun), b.connection()
	switch {
	case b.ping != nil:
		b.trip = min(measured, 2*b.trip+free)
	case b.trip == 0 || b.tripOf != connection:
		b.trip = max(measured, 1) // 0 is none
	default:
		b.trip = min(measured, b.trip)
	}
	b.tripOf = connection
	return b.trip
}
