package limits_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// shared is a store in memory whose requests take a while.
type shared struct {
	mu     sync.Mutex
	values map[string]time.Time
	revs   map[string]uint64
	writes int
	fail   error         // of every request
	taken  int           // so many writes lose
	slow   time.Duration // what a request takes
}

func newShared() *shared {
	return &shared{slow: time.Millisecond, values: map[string]time.Time{}, revs: map[string]uint64{}}
}

func (s *shared) request(ctx context.Context) error {
	select {
	case <-time.After(s.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail
}

func (s *shared) Now(ctx context.Context) (time.Time, error) {
	return time.Now(), s.request(ctx)
}

func (s *shared) Load(ctx context.Context, key string) (time.Time, uint64, error) {
	if err := s.request(ctx); err != nil {
		return time.Time{}, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], s.revs[key], nil
}

func (s *shared) Save(ctx context.Context, key string, until time.Time, revision uint64) (uint64, error) {
	if err := s.request(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken > 0 || s.revs[key] != revision {
		s.taken = max(s.taken-1, 0)
		return 0, limits.ErrTaken
	}
	s.writes++
	s.values[key] = until
	s.revs[key]++
	return s.revs[key], nil
}

// skewed is the store as a worker sees it whose clock goes wrong by so much.
type skewed struct {
	*shared

	by time.Duration
}

func (s skewed) Now(ctx context.Context) (time.Time, error) {
	now, err := s.shared.Now(ctx)
	return now.Add(-s.by), err
}

func (s skewed) Load(ctx context.Context, key string) (time.Time, uint64, error) {
	until, revision, err := s.shared.Load(ctx, key)
	return until.Add(-s.by), revision, err
}

func (s skewed) Save(ctx context.Context, key string, until time.Time, revision uint64) (uint64, error) {
	return s.shared.Save(ctx, key, until.Add(s.by), revision)
}

func (s *shared) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *shared) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// begun notes when calls begin.
type begun struct {
	mu    sync.Mutex
	start time.Time
	at    []time.Duration
	errs  []error
	wg    sync.WaitGroup
}

func newBegun() *begun { return &begun{start: time.Now()} }

// call has a call wait, in a separate goroutine.
func (b *begun) call(ctx context.Context, l *limits.Limiter, tenant string, limit target.Limits) {
	b.wg.Go(func() {
		release, err := l.Wait(ctx, "tool", tenant, limit)
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil {
			b.errs = append(b.errs, err)
			return
		}
		b.at = append(b.at, time.Since(b.start))
		if release != nil {
			release()
		}
	})
}

// begins returns when calls have begun, in order.
func (b *begun) begins() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.at))
}

func (b *begun) failures() []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.errs)
}

// limiter is one whose end the test sees to.
func limiter(t *testing.T, s limits.Store) *limits.Limiter {
	t.Helper()
	l := limits.New(s, slog.New(slog.DiscardHandler))
	t.Cleanup(l.Close)
	return l
}

func perSecond(calls, burst int) target.Limits {
	return target.Limits{Tool: target.Limit{Rate: target.Rate{Calls: calls, Per: time.Second, Burst: burst}}}
}

// requireRate checks begins against a rate: in no time begin more calls than it allows, give or take
// what the store takes to answer.
func requireRate(t *testing.T, at []time.Duration, r target.Rate) {
	t.Helper()
	const answer = 5 * time.Millisecond
	for i := range at {
		for j := i; j < len(at); j++ {
			most := r.Size() + int((at[j]-at[i]+answer)/r.Interval())
			require.LessOrEqual(t, j-i+1, most, "calls from %s to %s", at[i], at[j])
		}
	}
}
