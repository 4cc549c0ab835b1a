package searchbudget

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// searching is a search of so long that counts.
func searching(d time.Duration) func() error {
	return func() error { <-time.After(d); return nil }
}

func TestTenantSearchesForATenthOfTheTimeAndWaitsForItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const cost = 30 * time.Millisecond
		b := newBudget(nil)
		var searched time.Duration
		begun := time.Now()
		for time.Since(begun) < 2*time.Minute {
			err := b.Do(t.Context(), "acme", func() error { searched += cost; return searching(cost)() })
			busy, refused := errors.AsType[*BusyError](err)
			if !refused {
				require.NoError(t, err)
				continue
			}
			require.GreaterOrEqual(t, busy.Seconds(), 1)
			require.NoError(t, b.Do(t.Context(), "beta", searching(0)), "another tenant has its own budget")
			<-time.After(time.Duration(busy.Seconds()) * time.Second)
			require.NoError(t, b.Do(t.Context(), "acme", searching(0)), "it may continue at the time of the error")
		}
		require.Less(t, searched, 2*Burst+2*time.Minute/Share)
		require.Greater(t, searched, 2*time.Minute/Share/2)
	})
}

func TestConcurrentSearchesOfATenantUseOneBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const cost = 100 * time.Millisecond
		b := newBudget(nil)
		var mu sync.Mutex
		var searched time.Duration
		var all sync.WaitGroup
		for range 1_000 {
			all.Go(func() {
				_ = b.Do(t.Context(), "acme", func() error {
					mu.Lock()
					defer mu.Unlock()
					searched += cost
					return searching(cost)()
				})
			})
		}
		all.Wait()
		require.LessOrEqual(t, searched, Burst+Burst/Share+2*cost, "each asks for the budget when its turn comes")
	})
}

func TestSearchWhoseTurnDoesNotComeIsBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(nil)
		var first sync.WaitGroup
		first.Go(func() { _ = b.Do(t.Context(), "acme", searching(time.Second)) })
		synctest.Wait()
		never := func() error { require.Fail(t, "it searched"); return nil }
		late, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var busy *BusyError
		require.ErrorAs(t, b.Do(late, "acme", never), &busy)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		require.ErrorIs(t, b.Do(stopped, "acme", never), context.Canceled)
		first.Wait()
	})
}

func TestShortSearchesCostNothingAndTenantsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(nil)
		for n := range 10_000 {
			require.NoError(t, b.Do(t.Context(), "app", searching(free-1)))
			require.NoError(t, b.Do(t.Context(), strconv.Itoa(n), searching(10*free)))
			<-time.After(time.Second)
		}
		require.LessOrEqual(t, len(b.shares), maxTenants)
	})
}

func TestRoundTripIsNotCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const trip = 40 * time.Millisecond
		b := newBudget(func(context.Context) error { return searching(trip)() })
		searchFor := func(name string, d time.Duration) (refused int) {
			for begun := time.Now(); time.Since(begun) < d; {
				if b.Do(t.Context(), name, searching(trip)) != nil {
					refused++
					<-time.After(time.Second)
				}
			}
			return refused
		}
		searchFor("far", 2*time.Minute) // the time of a round trip is believed step by step
		require.Zero(t, searchFor("away", time.Minute))
	})
}

func TestRoundTripThatWaitsForASearchHidesNoCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const cost = 400 * time.Millisecond
		var pings atomic.Int64
		var runs atomic.Bool
		b := newBudget(func(context.Context) error {
			if runs.Load() { // a check of a search that runs
				return nil
			}
			if pings.Add(1)%2 == 0 {
				return searching(cost)()
			}
			return nil
		})
		search := func() error {
			runs.Store(true)
			defer runs.Store(false)
			return searching(cost)()
		}
		var searched time.Duration
		for begun := time.Now(); time.Since(begun) < time.Minute; {
			if b.Do(t.Context(), "acme", search) == nil {
				searched += cost
				continue
			}
			<-time.After(time.Second)
		}
		require.Less(t, searched, 2*Burst+time.Minute/Share)
	})
}

func TestTimeToSendWhatWasFoundIsNotCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const bytes = 1 << 20
		b := newBudget(nil)
		for range 1_000 {
			require.NoError(t, b.Read(t.Context(), "acme", func() (int, error) { return bytes, searching(bytes * perByte)() }))
		}
		require.Empty(t, b.shares)
	})
}

func TestTimeInWhichTheProcessWasStoppedIsNotCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(nil)
		var stopped atomic.Int64
		b.now = func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }
		for range 10 {
			require.NoError(t, b.Do(t.Context(), "acme", func() error {
				<-time.After(checkEvery / 2)
				stopped.Add(int64(time.Minute))
				return nil
			}))
			require.NoError(t, b.Do(t.Context(), "acme", func() error {
				stopped.Add(int64(time.Minute))
				<-time.After(3 * checkEvery / 2)
				return nil
			}))
		}
		require.NoError(t, b.Do(t.Context(), "acme", searching(2*Burst)))
		require.Error(t, b.Do(t.Context(), "acme", searching(0)), "a search that is only long counts")
	})
}

// A server that is paused, or a machine that is busy with other things, answers pings no sooner than searches.
func TestTimeInWhichTheServerAnswersNoPingIsNotCharged(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{30 * time.Millisecond, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var paused atomic.Bool
			b := newBudget(func(ctx context.Context) error {
				if !paused.Load() {
					return nil
				}
				select {
				case <-time.After(trip):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			require.NoError(t, b.Do(t.Context(), "acme", searching(Burst/2)))
			paused.Store(true)
			require.NoError(t, b.Do(t.Context(), "acme", searching(20*time.Second)))
			paused.Store(false)
			require.NoError(t, b.Do(t.Context(), "acme", searching(2*Burst)))
			require.Error(t, b.Do(t.Context(), "acme", searching(0)), "a search that is only long counts")
		})
	}
}

// On a busy machine checks come late.
func TestTimeBeforeALateCheckIsNotCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(nil)
		var late atomic.Int64
		b.now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
		for range 40 {
			require.NoError(t, b.Do(t.Context(), "acme", func() error {
				for range 10 {
					<-time.After(checkEvery / 2)
					late.Add(int64(2 * quick))
					<-time.After(checkEvery / 2)
				}
				return nil
			}))
		}
	})
}

func TestSearchWhoseConnectionWasLostIsNotCharged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(nil)
		connections := uint64(0)
		b.connections = func() uint64 { return connections }
		for range 10 {
			require.NoError(t, b.Do(t.Context(), "acme", func() error { connections++; return searching(5 * Burst)() }))
		}
		require.NoError(t, b.Do(t.Context(), "acme", searching(2*Burst)))
		require.Error(t, b.Do(t.Context(), "acme", searching(0)))
	})
}

func TestUserLeavesOthersOfItsTenantAPartOfTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const cost = 30 * time.Millisecond
		b := newBudget(nil)
		ada, bob := ForUser(t.Context(), "ada"), ForUser(t.Context(), "bob")
		var searched time.Duration
		for begun := time.Now(); time.Since(begun) < 2*time.Minute; {
			err := b.Do(ada, "acme", func() error { searched += cost; return searching(cost)() })
			busy, refused := errors.AsType[*BusyError](err)
			if !refused {
				require.NoError(t, err)
				continue
			}
			require.True(t, busy.User)
			require.ErrorContains(t, err, "this user")
			require.NoError(t, b.Do(bob, "acme", searching(cost)), "another user of the tenant")
			require.NoError(t, b.Do(t.Context(), "acme", searching(cost)), "the tenant itself")
			require.NoError(t, b.Do(ForUser(t.Context(), "ada"), "beta", searching(cost)), "a user of another tenant with the same name")
			<-time.After(time.Duration(busy.Seconds()) * time.Second)
			require.NoError(t, b.Do(ada, "acme", searching(0)), "it may continue at the time of the error")
		}
		require.Less(t, searched, (2*Burst+2*time.Minute/Share)/ofUser)
		require.Greater(t, searched, 2*time.Minute/Share/ofUser/2)
	})
}

func TestUsersOfATenantUseItsBudgetTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(nil)
		var refused *BusyError
		for n := range 20 {
			if err := b.Do(ForUser(t.Context(), strconv.Itoa(n)), "acme", searching(Burst/5)); errors.As(err, &refused) {
				break
			}
		}
		require.NotNil(t, refused)
		require.False(t, refused.User)
	})
}

func TestSearchesOfAUserTakeOnePlaceInTheTurnsOfItsTenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(nil)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { _ = b.Do(ForUser(t.Context(), "ada"), "acme", searching(20*time.Millisecond)) })
		}
		synctest.Wait()
		begun := time.Now()
		require.NoError(t, b.Do(ForUser(t.Context(), "bob"), "acme", searching(0)))
		require.LessOrEqual(t, time.Since(begun), 40*time.Millisecond)
		all.Wait()
	})
}

// Histories take all of the time of a connection that pings share.
func TestSearchIsChargedWhilePingsWaitForWhatElseItsConnectionDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const cost = 400 * time.Millisecond
		b := newBudget(nil)
		var measured atomic.Int64
		b.trips = func(context.Context) error {
			if measured.Add(1) == 1 { // before there are any
				return nil
			}
			return searching(cost)()
		}
		var searched time.Duration
		for begun := time.Now(); time.Since(begun) < time.Minute; {
			if b.Do(t.Context(), "acme", func() error { searched += cost; return searching(cost)() }) != nil {
				<-time.After(time.Second)
			}
		}
		require.Less(t, searched, 2*Burst+time.Minute/Share)
	})
}

func TestRoundTripIsNotChargedWithoutPings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const trip = 40 * time.Millisecond
		b := newBudget(nil)
		b.trips = func(context.Context) error { return searching(trip)() }
		for begun := time.Now(); time.Since(begun) < time.Minute; {
			require.NoError(t, b.Do(t.Context(), "far", searching(trip)))
		}
	})
}
