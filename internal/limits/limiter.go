package limits

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/serverclock"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// This file has the limiter as the engine calls it: Wait passes the limits of the tenant and of the tool in their order,
// each first by its concurrency, then by its rate.

// Bounds of waiting.
const (
	// MaxWait is the longest that a call waits for a place in a rate. One whose place would come
	// later fails immediately, with an error that names the time to try again.
	MaxWait = time.Minute
	// MaxWaiting is how many calls wait for the same limit in one worker.
	MaxWaiting = 10_000
)

// Limiter implements [engine.Limiter]. Make it with [New].
type Limiter struct {
	store Store
	log   *slog.Logger

	ctx    context.Context //nolint:containedctx // the life of what the limiter does in the background
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu         sync.Mutex
	gates      map[scope]*gate      // with running or waiting calls
	queues     map[scope]*rateQueue // with waiting calls
	known      *simplelru.LRU[scope, state]
	clock      *serverclock.Clock
	lastLogged time.Time // when it was logged last that the store does not answer
	closed     bool
}

var _ engine.Limiter = (*Limiter)(nil)

// scope is what a limit is for: all calls of a tool, or the calls of a tenant.
type scope struct {
	tool, tenant string
	all          bool
}

// New returns a limiter that shares its rates by store, which is not asked before a call with a
// rate waits. Close it when no call waits any more.
func New(store Store, logger *slog.Logger) *Limiter {
	const remembered = 4096
	l := &Limiter{store: store, log: logger, clock: serverclock.New(func(ctx context.Context) (time.Time, error) { return store.Now(ctx) }, time.Now), gates: map[scope]*gate{}, queues: map[scope]*rateQueue{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	known, err := simplelru.NewLRU[scope, state](remembered, nil)
	if err == nil { // its only error is a size below 1
		l.known = known
	}
	return l
}

// Wait implements [engine.Limiter]. A call waits for its tenant first, so that the rate of one
// tenant holds up no other, and for the rate of the tool last, so that nothing is between its
// place and its begin.
func (l *Limiter) Wait(ctx context.Context, tool, tenant string, limits target.Limits) (release func(), err error) {
	if limits.Tool == (target.Limit{}) && limits.Tenant == (target.Limit{}) {
		return nil, nil //nolint:nilnil // there is nothing to release
	}
	var entered []scope
	leave := func() {
		for _, s := range entered {
			l.leave(s)
		}
	}
	for _, step := range []struct {
		scope scope
		limit target.Limit
	}{{scope{tool, tenant, false}, limits.Tenant}, {scope{tool, "", true}, limits.Tool}} {
		if step.limit.Concurrency > 0 {
			if err := l.enter(ctx, step.scope, step.limit.Concurrency); err != nil {
				leave()
				return nil, err
			}
			entered = append(entered, step.scope)
		}
		if step.limit.Rate != (target.Rate{}) {
			if err := l.place(ctx, step.scope, step.limit.Rate); err != nil {
				leave()
				return nil, err
			}
		}
	}
	return sync.OnceFunc(leave), nil
}

// Close ends what the limiter does in the background, and every wait.
func (l *Limiter) Close() {
	l.cancel()
	l.mu.Lock()
	l.closed = true
	for _, q := range l.queues {
		for q.waiting.Len() > 0 {
			q.decide(q.first(), errClosed())
		}
		q.stop()
	}
	l.mu.Unlock()
	l.work.Wait()
}

// Waiting returns how many calls wait, for a free slot or for their place in a rate.
func (l *Limiter) Waiting() (calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.gates {
		calls += g.waiting.Len()
	}
	for _, q := range l.queues {
		calls += q.waiting.Len()
	}
	return calls
}

// String names what a limit is for, without the tenant, which other people must not see.
func (s scope) String() string {
	if s.all {
		return s.tool
	}
	return s.tool + " for one tenant"
}

// again is the end of a call that a limit refuses: nothing has happened.
func again(wait time.Duration, format string, args ...any) error {
	return tools.RetryAfter(&events.Error{Code: events.CodeToolError, Op: "wait for a limit", Msg: fmt.Sprintf(format, args...)}, wait)
}

func errClosed() error { return again(0, "rate limit: the worker ends") }

func errTooManyWaiting(s scope) error {
	return again(time.Second, "limit of %s: %d calls wait for it in this worker, which is the most: try again later", s, MaxWaiting)
}
