package deferral

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/subjects"
)

// slowQuota has room for two messages without data of each tenant, and takes its time to count.
type slowQuota struct {
	*Quota

	counts int
	takes  time.Duration
	err    error
}

func newSlowQuota(takes time.Duration) *slowQuota {
	l := &slowQuota{takes: takes}
	l.Quota = newQuota(func(context.Context) (usage, error) {
		l.counts++
		<-time.After(l.takes)
		return usage{most: 2 * tenantShare * overhead}, l.err
	})
	return l
}

// slots take a message of a tenant each, all at the same time.
func (l *slowQuota) slots(ctx context.Context, n int, app string) (fit, failed int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range n {
		wg.Go(func() {
			fits, err := l.Take(ctx, app, 0)
			mu.Lock()
			defer mu.Unlock()
			if fits {
				fit++
			}
			if err != nil {
				failed++
			}
		})
	}
	wg.Wait()
	return fit, failed
}

func TestOneCountOfDeferredMessagesServesAllSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSlowQuota(3 * time.Second)
		began := time.Now()
		fit, failed := l.slots(t.Context(), 256, "app")
		require.Equal(t, []int{1, 2, 0}, []int{l.counts, fit, failed})
		require.Equal(t, l.takes, time.Since(began))
	})
}

// The server has a hundred times as long for other requests as for a count, a minute at most.
func TestCountsOfDeferredMessagesTakeASmallPartOfTheTimeOfTheServer(t *testing.T) {
	t.Parallel()
	for takes, rest := range map[time.Duration]time.Duration{
		10 * time.Millisecond: time.Second, 200 * time.Millisecond: 20 * time.Second, 5 * time.Second: time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newSlowQuota(takes)
			for _, l.err = range []error{nil, errors.New("no answer"), nil} {
				before := l.counts
				l.slots(t.Context(), 8, "app")
				require.Equal(t, before+1, l.counts)
				<-time.After(rest - time.Millisecond)
				l.slots(t.Context(), 1, "other") // it fits by the last count
				require.Equal(t, before+1, l.counts, "it rests")
				<-time.After(time.Millisecond)
			}
		})
	}
}

// Each is deferred three times within a minute, as with a grace period of 30 s.
func TestMessagesThatAreDeferredAgainTakeNoMoreRoomThanTheyHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var live, refused, counts int
		r := newQuota(func(context.Context) (usage, error) {
			<-time.After(700 * time.Millisecond)
			counts++
			u := usage{most: 1 << 30}
			u.add("app", live, int64(live)*overhead)
			return u, nil
		})
		began := time.Now()
		for _, after := range []time.Duration{0, 11 * time.Second, 33 * time.Second} {
			<-time.After(time.Until(began.Add(after)))
			live = 0 // their schedules have fired
			for range 2 * maxDeferred / 5 {
				if ok, _ := r.Take(t.Context(), "app", 0); ok {
					live++
				} else {
					refused++
				}
			}
		}
		require.Zero(t, refused)
		require.Equal(t, 2, counts)
		for range maxDeferred {
			_, _ = r.Take(t.Context(), "app", 0)
		}
		require.Equal(t, 2, counts, "refused messages have the server count for a small part of the time, too")
	})
}

// While one call counts, and when that fails, the others are decided by the last count and what was deferred since.
func TestLastCountDecidesWhileDeferredMessagesAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSlowQuota(time.Second)
		l.slots(t.Context(), 1, "app")
		<-time.After(time.Minute)
		counted := make(chan struct{})
		go func() { defer close(counted); l.slots(t.Context(), 1, "counts") }()
		synctest.Wait()
		began := time.Now()
		fit, failed := l.slots(t.Context(), 5, "app")
		require.Equal(t, []int{1, 0}, []int{fit, failed}, "the second message of two")
		require.Zero(t, time.Since(began))
		<-counted
		fit, _ = l.slots(t.Context(), 5, "app")
		require.Equal(t, 1, fit, "none is counted, and one was deferred meanwhile")

		<-time.After(time.Minute)
		l.err = errors.New("no answer")
		fit, failed = l.slots(t.Context(), 5, "app")
		require.Equal(t, []int{3, 0, 1}, []int{l.counts, fit, failed})
		fit, failed = l.slots(t.Context(), 5, "other")
		require.Equal(t, []int{3, 2, 0}, []int{l.counts, fit, failed})
	})
}

// A worker that starts while the server does not answer knows only what it defers itself.
func TestWorkerThatCannotCountDeferredMessagesBoundsItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSlowQuota(time.Second)
		l.err = errors.New("no answer")
		fit, failed := l.slots(t.Context(), maxDeferred+10, "app")
		require.Equal(t, []int{1, maxDeferred, 1}, []int{l.counts, fit, failed})
	})
}

// The server lists so many schedules in one reply and no more.
func TestAllDeferredMessagesAreCountedHoweverManyRepliesItTakes(t *testing.T) {
	t.Parallel()
	space, err := subjects.New("oneturn")
	require.NoError(t, err)
	const total, most = 25, 10
	var u usage
	replies := 0
	require.NoError(t, u.count(space, func(offset int) (*jsapi.InfoPage, error) {
		page := &jsapi.InfoPage{}
		replies++
		page.Total, page.State.Subjects = total, map[string]uint64{}
		for i := offset; i < min(offset+most, total); i++ {
			kind := events.KindStructuredOutputReady
			if i == 0 {
				kind = events.KindExpire // one for each open question, which counts for nothing
			}
			timer, _, ok := space.DeferralTimer(space.In("default", kind, fmt.Sprint("app", i%2), "WF", "chat"), scheduleID(fmt.Sprintf("%022d", i), 100))
			require.True(t, ok)
			page.State.Subjects[timer] = 1
		}
		return page, nil
	}))
	const each = overhead + 100
	require.Equal(t, 3, replies)
	require.Equal(t, usage{bytes: 24 * each, tenants: map[string]tenantUsage{"app0": {12, 12 * each}, "app1": {12, 12 * each}}}, u)
}
