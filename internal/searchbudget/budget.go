// Package searchbudget bounds the time for which tenants, and users of a tenant, have the server search its index of names.
//
//	budget.go     [Budget]: what a tenant and a user may use, and what they have used
//	stopwatch.go  measures searches
//
// A request with a wildcard has the server match every name below the wildcard's place, whatever it
// finds, and store nothing meanwhile: all tenants bear its cost. So a [Budget] measures such requests
// and charges their time to the tenant that caused them, and to its user if the context of the search names one.
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

// What a tenant may use in one process. A user may use half of it, so that none uses up what its tenant has.
const (
	// Burst is the time for which searches of a tenant may run until it has to wait.
	Burst = time.Second
	// Share is the part of the time for which its searches may run after that: one in so many.
	Share = 10
	// perByte is the time that it takes to send what was found.
	perByte = 10 * time.Nanosecond
	// free is the time of a search that is not counted.
	free = time.Millisecond
)

// ofUser is the part of what its tenant has that a user may use: one in so many.
const ofUser = 2

// maxTenants is how many tenants and users are remembered before those are forgotten that may search again as
// much as ever.
const maxTenants = 1_000

type userKey struct{}

// ForUser returns a context whose searches count for a user too, "" for the tenant alone.
func ForUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// owner is whose a budget is: a tenant or a user of it.
type owner struct{ tenant, user string }

// BusyError refuses a search of a tenant or a user that has used up its time.
type BusyError struct {
	After time.Duration // when to try again
	User  bool          // it is the user that has used up its part, not the tenant
}

// Error implements error.
func (e *BusyError) Error() string {
	of := "tenant"
	if e.User {
		of = "user"
	}
	return fmt.Sprintf("busy: the requests of this %s have the server search too much: try again after %d s, or ask for less: one chat, one turn, or a question with its run_id", of, e.Seconds())
}

// Seconds returns the whole seconds to wait, 1 at least.
func (e *BusyError) Seconds() int { return max(1, int(math.Ceil(e.After.Seconds()))) }

// Budget bounds the searches of each tenant in this process. It is safe for concurrent use. A nil Budget refuses nothing.
type Budget struct {
	now func() time.Time
	// ping makes a round trip to the server that waits for no search; nil: it is not known whether the server is paused.
	ping func(ctx context.Context) error
	// trips makes a round trip to the server, which may wait for others; nil: it takes no time.
	trips func(ctx context.Context) error
	// connections counts the connections to the server so far; nil: there is one.
	connections func() uint64

	mu     sync.Mutex
	shares map[owner]*share
	trip   time.Duration // of a round trip
	tripAt time.Time     // when it was measured last
	tripOf uint64        // the connection of that
}

// share is what a tenant or a user has used. All but its turn is guarded by the budget.
type share struct {
	of        owner
	turn      chan struct{} // holds one while a search of the share runs
	inside    int           // those that run or wait for their turn
	used      time.Duration
	at        time.Time // when used was true
	throttled bool
}

// New returns an unused budget of searches over a connection, nil for a server that is near and never lost. Pings is a connection on which a
// ping waits for nothing: the server handles the requests of a connection one by one, so it may be the same one unless that has direct
// gets. Without it (nil) all of the time that a search takes is charged, also that in which the server is paused: else what waits on the
// connection would hide the cost of a search.
func New(nc, pings *nats.Conn) *Budget {
	if nc == nil {
		return newBudget(nil)
	}
	b := newBudget(nil)
	b.connections = func() uint64 { return nc.Stats().Reconnects }
	b.trips = nc.FlushWithContext
	if pings != nil {
		b.ping, b.trips = pings.FlushWithContext, pings.FlushWithContext
	}
	return b
}

// newBudget returns an unused budget. Ping makes a round trip to the server; nil is for a server that is near.
func newBudget(ping func(ctx context.Context) error) *Budget {
	return &Budget{now: time.Now, ping: ping, trips: ping, shares: map[owner]*share{}}
}

// Do searches for a tenant and the user of the context, one search of each at a time, and charges the time that it takes. It returns a
// *BusyError, and does not search, when one of them has used up its budget or its turn does not come
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
	shares := b.enter(ctx, name)
	defer b.leave(shares)
	end, err := takeTurns(ctx, shares)
	defer end()
	if err != nil {
		return err
	}
	for _, t := range shares {
		if after := b.delay(t); after > 0 {
			return &BusyError{After: after, User: t.of.user != ""}
		}
	}
	trip := b.roundTrip(ctx)
	watch := b.watch(ctx)
	sent := 0
	defer func() { b.charge(shares, watch.stop()-trip-time.Duration(sent)*perByte) }()
	sent, err = search()
	return err
}

// takeTurns waits for the turn of a search. Searches of one user wait for each other first, so that one user has one place among the others
// of its tenant. End ends the turn.
func takeTurns(ctx context.Context, shares []*share) (end func(), err error) {
	taken := 0
	end = func() {
		for _, t := range shares[:taken] {
			<-t.turn
		}
	}
	for _, t := range shares {
		select {
		case t.turn <- struct{}{}:
			taken++
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return end, context.Cause(ctx)
			}
			return end, &BusyError{}
		}
	}
	return end, nil
}

// Charge adds to what a tenant, and the user of the context, have used.
func (b *Budget) Charge(ctx context.Context, name string, took time.Duration) {
	if b == nil {
		return
	}
	shares := b.enter(ctx, name)
	defer b.leave(shares)
	b.charge(shares, took)
}

// enter returns the shares for which a search counts: the last one is of the tenant. They are kept until leave.
func (b *Budget) enter(ctx context.Context, tenant string) []*share {
	b.mu.Lock()
	defer b.mu.Unlock()
	var shares []*share
	if user, _ := ctx.Value(userKey{}).(string); user != "" {
		shares = append(shares, b.share(owner{tenant, user}))
	}
	return append(shares, b.share(owner{tenant: tenant}))
}

func (b *Budget) share(of owner) *share {
	t := b.shares[of]
	if t == nil {
		b.forget()
		t = &share{of: of, turn: make(chan struct{}, 1)}
		b.shares[of] = t
	}
	t.inside++
	return t
}

// leave forgets the shares of which nothing is used.
func (b *Budget) leave(shares []*share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range shares {
		if t.inside--; t.idle(b.now()) {
			delete(b.shares, t.of)
		}
	}
}

// forget makes room for another share.
func (b *Budget) forget() {
	if len(b.shares) < maxTenants {
		return
	}
	now := b.now()
	for of, t := range b.shares {
		if t.idle(now) {
			delete(b.shares, of)
		}
	}
}

// delay returns how long the tenant or user has to wait, 0 if it may search. One that had to wait searches again when half of the burst is
// left: one request may need several searches.
func (b *Budget) delay(t *share) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	burst, part := t.bounds()
	left := t.left(b.now())
	switch {
	case left > burst:
		t.throttled = true
	case left <= burst/2:
		t.throttled = false
	}
	if !t.throttled {
		return 0
	}
	return (left - burst/2) * time.Duration(part)
}

func (b *Budget) charge(shares []*share, took time.Duration) {
	if took < free {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, t := range shares {
		t.used, t.at = t.left(now)+took, now
	}
}

// bounds are the burst, and the part of the time: one in so many.
func (t *share) bounds() (burst time.Duration, part int) {
	if t.of.user != "" {
		return Burst / ofUser, Share * ofUser
	}
	return Burst, Share
}

// left is what counts of the time that was used.
func (t *share) left(now time.Time) time.Duration {
	_, part := t.bounds()
	return max(t.used-now.Sub(t.at)/time.Duration(part), 0)
}

func (t *share) idle(now time.Time) bool { return t.inside == 0 && t.left(now) == 0 }
