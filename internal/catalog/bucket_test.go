package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/catalog"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// output is a log.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) count(part string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Count(o.text.Bytes(), []byte(part))
}

// background runs a function until the test ends.
func background(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// announce runs the announcer of a worker with workflows.
func announce(t *testing.T, s *oneturntest.Server, log *output, names ...string) *catalog.Announcer {
	t.Helper()
	js, space := connect(t, s)
	a := catalog.NewAnnouncer(js, space, "default", func() (list []catalog.Workflow) {
		for _, name := range names {
			list = append(list, catalog.Workflow{Name: name, Agents: 2})
		}
		return list
	}, slog.New(slog.NewTextHandler(log, nil)))
	background(t, a.Run)
	return a
}

func connect(t *testing.T, s *oneturntest.Server) (jetstream.JetStream, subjects.Space) {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	return js, space
}

// read runs a list of workflows.
func read(t *testing.T, s *oneturntest.Server, log *output) *catalog.Workflows {
	t.Helper()
	js, space := connect(t, s)
	w := catalog.NewWorkflows(js, space, slog.New(slog.NewTextHandler(log, nil)))
	background(t, w.Run)
	return w
}

func TestListHasAllThatWorkersAnnounceAlsoWhenItTakesSeveralReads(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	s.Provision()
	const workflows = 600
	var names []string
	for i := range workflows {
		names = append(names, fmt.Sprintf("Workflow %03d", i))
	}
	log := &output{}
	announce(t, s, log, names...)
	w := read(t, s, log)
	require.Eventually(t, func() bool {
		_, err := w.Find(t.Context(), names[workflows-1])
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	all, err := w.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, workflows)
	require.Equal(t, catalog.Workflow{Name: "Workflow 000", Agents: 2, Pools: []string{"default"}}, all[0])
	require.Zero(t, log.count("\n"))
}

func TestServerWithoutTheBucketIsReportedOnceAndServedOnceItIsProvisioned(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	log, logOfList := &output{}, &output{}
	announce(t, s, log, "Order")
	w := read(t, s, logOfList)
	_, err := w.Find(t.Context(), "Order")
	require.ErrorIs(t, err, catalog.ErrMissing)
	require.ErrorContains(t, err, "bucket ONETURN_WORKFLOWS is missing: turnctl provision makes it")
	require.Eventually(t, func() bool { return log.count("turnctl provision") == 1 }, 10*time.Second, time.Millisecond)
	s.Provision()
	require.Eventually(t, func() bool {
		_, err := w.Find(t.Context(), "Order")
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, log.count("turnctl provision"))
	require.Equal(t, 1, logOfList.count("turnctl provision"))
}

func TestRecordThatWasDeletedIsAnnouncedAgain(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	s.Provision()
	log := &output{}
	a := announce(t, s, log, "Order", "Return")
	js, _ := connect(t, s)
	kv, err := js.KeyValue(t.Context(), "ONETURN_WORKFLOWS")
	require.NoError(t, err)
	revision := func() uint64 {
		entry, err := kv.Get(t.Context(), subjects.WorkflowKey("Order", "default"))
		if err != nil {
			return 0
		}
		return entry.Revision()
	}
	require.Eventually(t, func() bool { return revision() > 0 }, 10*time.Second, time.Millisecond)
	first := revision()
	require.NoError(t, kv.Delete(t.Context(), subjects.WorkflowKey("Order", "default")))
	require.Zero(t, revision())
	w := read(t, s, log)
	all, err := w.List(t.Context())
	require.NoError(t, err)
	for _, found := range all {
		require.NotEqual(t, "Order", found.Name)
	}
	require.Eventually(t, func() bool {
		a.Changed()
		return revision() > first
	}, 10*time.Second, 10*time.Millisecond)
	require.Zero(t, log.count("\n"))
}

func TestListOutlivesTheServer(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	log := &output{}
	announce(t, s, log, "Order")
	w := read(t, s, log)
	require.Eventually(t, func() bool {
		_, err := w.Find(t.Context(), "Order")
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, s.Stop())
	require.Eventually(t, func() bool {
		_, err := w.Find(t.Context(), "Return")
		return err != nil && log.count("the list of workflows cannot be read") == 1
	}, 30*time.Second, 10*time.Millisecond)
	found, err := w.Find(t.Context(), "Order")
	require.NoError(t, err)
	require.Equal(t, "Order", found.Name)
	_, err = w.Find(t.Context(), "Return")
	require.Error(t, err)
	require.NotErrorIs(t, err, catalog.ErrUnknown)
}
