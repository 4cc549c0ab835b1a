package limits_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// noted notes numbers in their order.
func noted() (list func() []int, note func(int)) {
	var mu sync.Mutex
	var numbers []int
	list = func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(numbers)
	}
	note = func(n int) {
		mu.Lock()
		defer mu.Unlock()
		numbers = append(numbers, n)
	}
	return list, note
}

// requireNothingKept checks that a limiter without waiting calls keeps nothing.
func requireNothingKept(t *testing.T, l *limits.Limiter) {
	t.Helper()
	<-time.After(time.Second)
	synctest.Wait()
	kept := l.Sizes()
	require.Zero(t, kept.Gates)
	require.Zero(t, kept.Queues)
	require.Zero(t, l.Waiting())
}

func TestToolWithoutLimitsSendsNoRequest(t *testing.T) {
	t.Parallel()
	release, err := limiter(t, nil).Wait(t.Context(), "tool", "acme", target.Limits{Output: 100})
	require.NoError(t, err)
	require.Nil(t, release)
}

func TestConcurrencyIsPerWorkerAndSendsNoRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limits.New(nil, nil)
		defer l.Close()
		limit := target.Limits{Tool: target.Limit{Concurrency: 2}}
		order, note := noted()
		release, errs := make([]func(), 5), make([]error, 5)
		for i := range 5 {
			go func() {
				release[i], errs[i] = l.Wait(t.Context(), "tool", "acme", limit)
				note(i)
			}()
			synctest.Wait()
		}
		require.Equal(t, []int{0, 1}, order())
		require.Equal(t, 3, l.Waiting())
		release[1]()
		release[1]() // once is all that counts
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, order())

		limit.Tool.Concurrency = 3 // a manifest that has changed
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Wait(ctx, "tool", "acme", limit)
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3}, order())
		for _, i := range []int{0, 2, 3} {
			release[i]()
		}
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2, 3, 4}, order())
		release[4]()
		require.NoError(t, errors.Join(errs...))
		requireNothingKept(t, l)
	})
}

func TestTenantWithTooManyCallsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, newShared())
		limit := target.Limits{Tool: target.Limit{Concurrency: 2}, Tenant: target.Limit{Concurrency: 1, Rate: target.Rate{Calls: 1, Per: time.Second, Burst: 1}}}
		b := newBegun()
		for range 4 {
			b.call(t.Context(), l, "noisy", limit)
		}
		synctest.Wait()
		other := newBegun()
		other.call(t.Context(), l, "quiet", limit)
		<-time.After(100 * time.Millisecond)
		require.Len(t, other.begins(), 1)
		b.wg.Wait()
		require.Len(t, b.begins(), 4)
		requireRate(t, b.begins(), limit.Tenant.Rate)
	})
}

func TestWorkersShareARate(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"same clock": 0, "clock of one is ahead": time.Hour, "clock of one is late": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newShared()
				limit := perSecond(10, 3)
				b := newBegun()
				for _, seen := range []limits.Store{store, skewed{store, by}} {
					l := limits.New(seen, nil)
					defer l.Close()
					for range 50 {
						b.call(t.Context(), l, "acme", limit)
					}
				}
				b.wg.Wait()
				require.Empty(t, b.failures())
				require.Len(t, b.begins(), 100)
				requireRate(t, b.begins(), limit.Tool.Rate)
				require.InDelta(t, 9.7, b.begins()[99].Seconds(), 0.1, "no place is lost")
				require.Less(t, store.written(), 20, "places are taken for many calls together")
			})
		})
	}
}

func TestCallsOfASlowStoreDoNotBeginTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShared()
		store.slow = time.Second
		l := limiter(t, store)
		b := newBegun()
		for range 50 {
			b.call(t.Context(), l, "acme", perSecond(100, 1))
		}
		b.wg.Wait()
		require.Len(t, b.begins(), 50)
		requireRate(t, b.begins(), perSecond(100, 1).Tool.Rate)
	})
}

func TestCallsBeginInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, newShared())
		order, note := noted()
		var calls errgroup.Group
		for i := range 10 {
			calls.Go(func() error {
				_, err := l.Wait(t.Context(), "tool", "acme", perSecond(10, 1))
				note(i)
				return err
			})
			<-time.After(7 * time.Millisecond)
		}
		require.NoError(t, calls.Wait())
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, order())
		requireNothingKept(t, l)
	})
}

func TestCallThatGoesLeavesItsPlaceToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShared()
		first, second := limiter(t, store), limiter(t, store)
		b := newBegun()
		ctx, cancel := context.WithCancelCause(t.Context())
		b.call(t.Context(), first, "acme", perSecond(1, 1)) // begins immediately
		<-time.After(100 * time.Millisecond)
		b.call(ctx, first, "acme", perSecond(1, 1)) // at 1 s
		synctest.Wait()
		b.call(t.Context(), first, "acme", perSecond(1, 1)) // at 2 s, or at 1 s
		<-time.After(100 * time.Millisecond)
		cause := errors.New("cancelled")
		cancel(cause)
		<-time.After(100 * time.Millisecond)
		require.Equal(t, []error{cause}, b.failures())
		b.call(t.Context(), second, "acme", perSecond(1, 1)) // at 2 s, which is not used any more
		b.wg.Wait()
		for i, want := range []float64{0, 1, 2} {
			require.InDelta(t, want, b.begins()[i].Seconds(), 0.02)
		}
	})
}

func TestPlaceThatCouldNotBeReleasedLapses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShared()
		first, second := limiter(t, store), limiter(t, store)
		b := newBegun()
		ctx, cancel := context.WithCancel(t.Context())
		b.call(t.Context(), first, "acme", perSecond(1, 1))
		<-time.After(100 * time.Millisecond)
		b.call(ctx, first, "acme", perSecond(1, 1)) // at 1 s
		<-time.After(100 * time.Millisecond)
		b.call(t.Context(), second, "acme", perSecond(1, 1)) // at 2 s, taken
		<-time.After(100 * time.Millisecond)
		cancel()
		b.wg.Wait()
		require.Len(t, b.begins(), 2)
		require.InDelta(t, 2, b.begins()[1].Seconds(), 0.02)
		requireNothingKept(t, first)
	})
}

func TestCallWhosePlaceWouldBeTooLateFailsImmediatelyAndNamesTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, newShared())
		limit := target.Limits{Tool: target.Limit{Rate: target.Rate{Calls: 1, Per: 50 * time.Second}}}
		for i, want := range []time.Duration{0, 50 * time.Second} {
			start := time.Now()
			_, err := l.Wait(t.Context(), "tool", "acme", limit)
			require.NoError(t, err)
			require.InDelta(t, want.Seconds(), time.Since(start).Seconds(), 0.02, i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := l.Wait(ctx, "tool", "acme", limit)
		var e *events.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, events.CodeToolError, e.Code)
		require.Regexp(t, `^rate limit of tool: 1 calls in 50s may begin; this one could in 49\.\d+s, which is later than it waits: try again then$`, e.Msg)
		wait, retryable := tools.RetryDelay(err)
		require.True(t, retryable)
		require.InDelta(t, 50, wait.Seconds(), 0.02)
		require.NoError(t, ctx.Err())

		// The next one takes the place, and one more would wait for longer than a minute.
		b := newBegun()
		b.call(t.Context(), l, "acme", limit)
		<-time.After(time.Second)
		b.call(t.Context(), l, "acme", limit)
		<-time.After(time.Second)
		require.Len(t, b.failures(), 1)
		b.wg.Wait()
		require.Len(t, b.begins(), 1)
	})
}

func TestStoreThatDoesNotAnswerMakesCallsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShared()
		store.breaks(errors.New("no answer"))
		l := limiter(t, store)
		b := newBegun()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		b.call(ctx, l, "acme", perSecond(1000, 0))
		for range 9 {
			b.call(t.Context(), l, "acme", perSecond(1000, 0))
		}
		<-time.After(30 * time.Second)
		require.Equal(t, []error{context.DeadlineExceeded}, b.failures())
		require.Empty(t, b.begins(), "without a store nothing is unlimited")
		store.breaks(nil)
		b.wg.Wait()
		require.Len(t, b.begins(), 9, "and nothing is lost")
	})
}

func TestStoreThatIsMissingEndsTheCallWithTheFix(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShared()
		store.breaks(limits.ErrMissing)
		_, err := limiter(t, store).Wait(t.Context(), "tool", "acme", perSecond(1, 0))
		require.ErrorIs(t, err, events.ErrToolError)
		require.ErrorContains(t, err, "rate limit of tool: is missing")
	})
}

func TestManyWorkersThatWriteAtTheSameTimeAllGetOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShared()
		store.taken = 40
		limit := perSecond(100, 10)
		b := newBegun()
		for range 8 {
			l := limits.New(store, nil)
			defer l.Close()
			for i := range 25 {
				b.wg.Go(func() {
					<-time.After(time.Duration(i) * 10 * time.Millisecond)
					b.call(t.Context(), l, "acme", limit)
				})
			}
		}
		b.wg.Wait()
		require.Empty(t, b.failures())
		require.Len(t, b.begins(), 200)
		requireRate(t, b.begins(), limit.Tool.Rate)
	})
}

func TestNothingIsKeptOfTenantsThatAreIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, newShared())
		limit := target.Limits{Tenant: target.Limit{Concurrency: 1, Rate: target.Rate{Calls: 1, Per: time.Hour}}}
		const tenants = 10_000
		b := newBegun()
		for batch := range 10 {
			for i := range tenants / 10 {
				b.call(t.Context(), l, strconv.Itoa(batch)+"/"+strconv.Itoa(i), limit)
			}
			b.wg.Wait()
		}
		require.Empty(t, b.failures())
		<-time.After(time.Second)
		require.Equal(t, limits.Sizes{Known: 4096}, l.Sizes())
	})
}

func TestCloseEndsEveryWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newShared()
		l := limits.New(store, nil)
		b := newBegun()
		for range 3 {
			b.call(t.Context(), l, "acme", perSecond(1, 1))
		}
		_, err := l.Wait(t.Context(), "gate", "acme", target.Limits{Tool: target.Limit{Concurrency: 1}})
		require.NoError(t, err)
		b.wg.Go(func() {
			_, err := l.Wait(t.Context(), "gate", "acme", target.Limits{Tool: target.Limit{Concurrency: 1}})
			require.ErrorContains(t, err, "the worker ends")
		})
		<-time.After(100 * time.Millisecond)
		l.Close()
		b.wg.Wait()
		require.Len(t, b.failures(), 2)
		_, err = l.Wait(t.Context(), "tool", "acme", perSecond(1, 1))
		require.ErrorContains(t, err, "the worker ends")
	})
}

func TestRateThatCannotBeKeptEndsTheCall(t *testing.T) {
	t.Parallel()
	_, err := limiter(t, nil).Wait(t.Context(), "tool", "acme", target.Limits{Tool: target.Limit{Rate: target.Rate{Calls: 1}}})
	require.ErrorContains(t, err, "invalid rate: 1 calls in 0s")
}
