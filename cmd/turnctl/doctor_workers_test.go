package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

// worker starts a worker whose server stores so many percent of what it may store.
func worker(t *testing.T, s *oneturntest.Server, percent *atomic.Int64) {
	t.Helper()
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{
		StoreUse: func() (int64, int64, error) { return percent.Load(), 100, nil },
		Tools: []oneturn.Tool{oneturn.NewTool("greet", func(context.Context, greeting) (greeted, error) { return greeted{}, nil }, oneturn.ToolOptions{
			Workflow: "Hello", Agent: "Greeter", Model: "Greeting",
		})},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.Eventually(t, func() bool {
		err := w.Ready()
		if percent.Load() < highWater {
			return err == nil
		}
		return err != nil && strings.HasPrefix(err.Error(), "the store is nearly full") // and consumes
	}, 10*time.Second, time.Millisecond)
}

// The limit of an account is not all that bounds a store: of the disk of an embedded server only its
// worker knows.
func TestDoctorNamesAStoreThatIsNearlyFull(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var full, room atomic.Int64
	full.Store(99)
	worker(t, s, &full)
	code, text, _ := turnctl(t, s, "doctor", "--ack-wait", "1s")
	require.Equal(t, 1, code)
	require.Contains(t, strings.Join(strings.Fields(text), " "), "error workers 1 of 1 worker not ready: the store is nearly full: no new turns are claimed")
	require.Contains(t, text, "something is broken")

	worker(t, s, &room)
	text = ok(t, s, "doctor", "--ack-wait", "1s")
	require.Contains(t, strings.Join(strings.Fields(text), " "), "warning workers 1 of 2 workers not ready: the store is nearly full")
	full.Store(10)
	require.Eventually(t, func() bool {
		return strings.Contains(ok(t, s, "doctor", "--ack-wait", "1s"), "2 workers answered")
	}, 20*time.Second, 100*time.Millisecond)
}
