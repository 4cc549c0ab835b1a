package catalog

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// announcer runs an announcer of pool p until the function that it returns is called.
func announcer(t *testing.T, store *fake, log *lines, pool string, current func() []Workflow) (a *Announcer, stop func()) {
	t.Helper()
	a = NewAnnouncer(nil, space(t), pool, current, log.logger())
	a.store = store
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	return a, func() {
		cancel()
		<-done
	}
}

func workflows(names ...string) []Workflow {
	list := make([]Workflow, len(names))
	for i, name := range names {
		list[i] = Workflow{Name: name}
	}
	return list
}

func TestWorkflowsThatStayTheSameAreWrittenAgainOnlyAfterHalfOfTheirTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		_, stop := announcer(t, store, log, "default", func() []Workflow { return workflows("A", "B") })
		defer stop()
		synctest.Wait()
		_, writes := store.counts()
		require.Equal(t, 2, writes)
		pass(t, renewAfter-time.Hour)
		reads, writes := store.counts()
		require.Equal(t, 2, writes)
		require.InDelta(t, float64(renewAfter/announceEvery), reads, 4)
		pass(t, 2*announceEvery)
		_, writes = store.counts()
		require.Equal(t, 4, writes)
		pass(t, 30*24*time.Hour)
		found, err := store.read(t.Context())
		require.NoError(t, err)
		require.Len(t, found.stored, 2, "they outlive their time as long as the worker runs")
		stop()
		pass(t, TTL)
		found, err = store.read(t.Context())
		require.NoError(t, err)
		require.Empty(t, found.stored)
	})
}

func TestChangeIsAnnouncedImmediatelyAndAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		var agents atomic.Int64
		a, stop := announcer(t, store, log, "default", func() []Workflow {
			return []Workflow{{Name: "A"}, {Name: "B", Agents: int(agents.Load())}}
		})
		defer stop()
		synctest.Wait()
		agents.Store(3)
		a.Changed()
		a.Changed()
		synctest.Wait()
		_, writes := store.counts()
		require.Equal(t, 3, writes)
		found, err := store.read(t.Context())
		require.NoError(t, err)
		require.JSONEq(t, `{"workflow_name":"B","description":"","pool":"default","agents":3}`, string(found.stored[1].data))
		require.Zero(t, log.count("\n"))
	})
}

func TestManyWorkersOfAPoolWriteARecordOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		for range 20 {
			_, stop := announcer(t, store, log, "default", func() []Workflow { return workflows("A", "B", "C") })
			defer stop()
		}
		_, stop := announcer(t, store, log, "gpu", func() []Workflow { return workflows("A") })
		defer stop()
		pass(t, time.Minute)
		_, writes := store.counts()
		require.Equal(t, 4, writes)
		require.Zero(t, log.count("\n"), "that another worker was faster is not a failure")
	})
}

// TestRecordThatAnotherWorkerWroteMeanwhileIsComparedAgain: the newer version of a rolling deploy is announced, although
// a worker of the older one has written in between.
func TestRecordThatAnotherWorkerWroteMeanwhileIsComparedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		other := NewAnnouncer(nil, space(t), "default", func() []Workflow { return []Workflow{{Name: "A", Agents: 1}} }, log.logger())
		other.store = store
		first := true
		a := NewAnnouncer(nil, space(t), "default", func() []Workflow { return []Workflow{{Name: "A", Agents: 2}} }, log.logger())
		a.store = &racing{fake: store, race: func() {
			if first {
				first = false
				require.NoError(t, other.announce(t.Context()))
			}
		}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			a.Run(ctx)
		}()
		pass(t, time.Minute)
		cancel()
		<-done
		found, err := store.read(t.Context())
		require.NoError(t, err)
		require.Len(t, found.stored, 1)
		require.Contains(t, string(found.stored[0].data), `"agents":2`)
		require.False(t, first)
	})
}

// racing has something happen between a read and the write after it.
type racing struct {
	*fake

	race func()
}

func (r *racing) write(ctx context.Context, subject string, data []byte, seq uint64) error {
	r.race()
	return r.fake.write(ctx, subject, data, seq)
}

func TestFailuresAreLoggedOnceAndTriedAgainMoreAndMoreSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{err: errAway}, &lines{}
		_, stop := announcer(t, store, log, "default", func() []Workflow { return workflows("A") })
		defer stop()
		pass(t, time.Minute)
		reads, _ := store.counts()
		require.InDelta(t, 6, reads, 2)
		pass(t, 24*time.Hour)
		reads, _ = store.counts()
		require.InDelta(t, 24*6+6, reads, 40)
		require.Equal(t, 1, log.count("workflows are not announced"))
		store.set(nil)
		pass(t, lastRetry*5/4)
		_, writes := store.counts()
		require.Equal(t, 1, writes)
		require.Equal(t, 1, log.count("workflows are announced again"))
		require.Equal(t, 2, log.count("\n"))
	})
}

func TestWorkflowThatCannotBeAnnouncedDoesNotPreventOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		_, stop := announcer(t, store, log, "default", func() []Workflow {
			return []Workflow{
				{Name: strings.Repeat("x", MaxRecord)},
				{},
				{Name: "Long", Description: strings.Repeat("d", 2*MaxRecord)},
				{Name: "Escaped", Description: strings.Repeat("\x01", 2*MaxRecord)},
				{Name: "A"},
			}
		})
		defer stop()
		synctest.Wait()
		list := newWorkflows(store, space(t), log.logger()).decode(store.stored)
		require.Len(t, list, 3)
		require.Equal(t, []string{"A", "Escaped", "Long"}, []string{list[0].Name, list[1].Name, list[2].Name})
		require.Empty(t, list[1].Description)
		require.Len(t, list[2].Description, maxDescription)
		require.Equal(t, 1, log.count("use a shorter name"))
	})
}
