package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// list runs a list of workflows until the function that it returns is called.
func list(t *testing.T, store *fake, log *lines) (w *Workflows, stop func()) {
	t.Helper()
	w = newWorkflows(store, space(t), log.logger())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	return w, func() {
		cancel()
		<-done
	}
}

// put stores the record of a workflow as a worker of a pool does.
func put(t *testing.T, store *fake, pool string, w Workflow) {
	t.Helper()
	a := NewAnnouncer(nil, space(t), pool, func() []Workflow { return []Workflow{w} }, (&lines{}).logger())
	a.store = store
	require.NoError(t, a.announce(t.Context()))
}

func TestWorkflowOfSeveralPoolsIsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		put(t, store, "gpu", Workflow{Name: "Order", Agents: 1, Description: "old"})
		put(t, store, "default", Workflow{Name: "Order", Agents: 2, Description: "new"})
		put(t, store, "default", Workflow{Name: "Alpha"})
		w, stop := list(t, store, log)
		defer stop()
		all, err := w.List(t.Context())
		require.NoError(t, err)
		want := Workflow{Name: "Order", Description: "new", Agents: 2, Pools: []string{"default", "gpu"}}
		require.Equal(t, []Workflow{{Name: "Alpha", Pools: []string{"default"}}, want}, all)
		all[1].Pools[0] = "changed by the caller"
		found, err := w.Find(t.Context(), "Order")
		require.NoError(t, err)
		require.Equal(t, want, found)
	})
}

func TestNameIsFoundAsWorkersFindIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		for _, name := range []string{"Order", "order", "Café", "Größe"} {
			put(t, store, "default", Workflow{Name: name})
		}
		w, stop := list(t, store, log)
		defer stop()
		for asked, want := range map[string]string{"Order": "Order", "order": "order", "CAFÉ": "Café", "Cafe\u0301": "Café", "GRÖSSE": "", "ORDER": "", "": "", "Ord": ""} {
			found, err := w.Find(t.Context(), asked)
			require.Equal(t, want, found.Name, asked)
			if want == "" {
				require.ErrorIs(t, err, ErrUnknown)
			}
		}
	})
}

func TestUnknownNamesCauseAReadEveryHalfSecondAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		w, stop := list(t, store, log)
		defer stop()
		var asked sync.WaitGroup
		var other atomic.Int32
		end := time.Now().Add(time.Minute)
		for i := range 10 {
			asked.Go(func() {
				for time.Now().Before(end) {
					_, err := w.Find(t.Context(), fmt.Sprint("no ", i))
					if !errors.Is(err, ErrUnknown) {
						other.Add(1)
					}
				}
			})
		}
		asked.Wait()
		require.Zero(t, other.Load())
		reads, _ := store.counts()
		require.InDelta(t, 120, reads, 2)
		before := reads
		pass(t, 10*time.Minute)
		reads, _ = store.counts()
		require.InDelta(t, 20, reads-before, 2)
	})
}

func TestWorkflowThatWasAnnouncedAfterTheLastReadIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		w, stop := list(t, store, log)
		defer stop()
		_, err := w.List(t.Context())
		require.NoError(t, err)
		pass(t, time.Millisecond)
		put(t, store, "default", Workflow{Name: "New"})
		start := time.Now()
		_, err = w.Find(t.Context(), "New")
		require.NoError(t, err)
		require.Less(t, time.Since(start), readAgain)
	})
}

func TestWorkflowThatWasJustAnnouncedIsFoundByTheNextRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		w, stop := list(t, store, log)
		defer stop()
		pass(t, 5*time.Second)
		put(t, store, "default", Workflow{Name: "New"})
		start := time.Now()
		_, err := w.Find(t.Context(), "New")
		require.NoError(t, err)
		require.Less(t, time.Since(start), readAgain)
	})
}

func TestListIsKeptWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, log := &fake{}, &lines{}
		put(t, store, "default", Workflow{Name: "A"})
		w, stop := list(t, store, log)
		defer stop()
		_, err := w.Find(t.Context(), "A")
		require.NoError(t, err)
		store.set(errAway)
		pass(t, time.Hour)
		_, err = w.Find(t.Context(), "A")
		require.NoError(t, err)
		all, err := w.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		_, err = w.Find(t.Context(), "B")
		require.ErrorIs(t, err, errAway)
		require.NotErrorIs(t, err, ErrUnknown, "it may have been announced meanwhile")
		require.Equal(t, 1, log.count("the list of workflows cannot be read"))
		store.set(nil)
		pass(t, readEvery)
		_, err = w.Find(t.Context(), "B")
		require.ErrorIs(t, err, ErrUnknown)
		require.Equal(t, 1, log.count("the list of workflows is read again"))
	})
}

func TestListThatWasNeverReadIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		idle := newWorkflows(&fake{}, space(t), (&lines{}).logger()) // and Run is not called
		start := time.Now()
		_, err := idle.List(t.Context())
		require.ErrorContains(t, err, "has not been read yet")
		require.Equal(t, patience, time.Since(start))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errAway)
		_, err = idle.Find(ctx, "A")
		require.ErrorIs(t, err, errAway)

		w, stop := list(t, &fake{err: ErrMissing}, &lines{})
		defer stop()
		_, err = w.List(t.Context())
		require.ErrorIs(t, err, ErrMissing)
		_, err = w.Find(t.Context(), "A")
		require.ErrorIs(t, err, ErrMissing)
	})
}

func TestRecordsThatNoWorkerWritesAreLeftOut(t *testing.T) {
	t.Parallel()
	s := space(t)
	w := newWorkflows(&fake{}, s, (&lines{}).logger())
	good, err := encode(Workflow{Name: "A"}, "default")
	require.NoError(t, err)
	long, err := json.Marshal(record{Workflow: "A", Pool: "default", Description: strings.Repeat("x", MaxRecord)})
	require.NoError(t, err)
	at := s.WorkflowSubject("A", "default")
	require.Len(t, w.decode([]entry{{subject: at, data: good}}), 1)
	require.Empty(t, w.decode([]entry{
		{subject: at},
		{subject: at, data: []byte("{")},
		{subject: at, data: []byte("null")},
		{subject: at, data: long},
		{subject: s.WorkflowSubject("B", "default"), data: good},
		{subject: s.WorkflowSubject("A", "gpu"), data: good},
		{subject: at + ".x", data: good},
		{subject: at, data: []byte(`{"workflow_name":"A","pool":"default","agents":-1}`)},
		{subject: s.WorkflowSubject("Cafe\u0301", "default"), data: []byte(`{"workflow_name":"Cafe\u0301","pool":"default"}`)},
	}))
}
