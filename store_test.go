package oneturn_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/turntest"
)

func TestNoTurnIsTakenWhileTheStoreIsNearlyFull(t *testing.T) {
	t.Parallel()
	s := server(t)
	var used atomic.Int64
	used.Store(85)
	var asked atomic.Int64
	c := greeter()
	c.StoreUse = func() (int64, int64, error) {
		asked.Add(1)
		return used.Load(), 100, nil
	}
	w := start(t, s, c)
	require.Eventually(t, func() bool { return asked.Load() > 0 && w.Ready() != nil }, 10*time.Second, time.Millisecond)
	cl := client(t, s)
	one := turn("t", map[string]any{"name": "Ada"})
	publish(t, cl, one)
	before := asked.Load()
	require.Eventually(t, func() bool { return asked.Load() > before }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, uint64(1), pending(t, s))
	used.Store(84)
	require.True(t, await(t, cl, one.TurnID).Success)
}

// pending is how many messages no worker has been given.
func pending(t *testing.T, s *turntest.Server) uint64 {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	return consumer.CachedInfo().NumPending
}

// TestWorkerGoesOnWhenItsServerOpensItsStoreAnew: as an embedded server does when a full disk
// has room again. Every turn that was accepted ends once, and the worker does not.
func TestWorkerGoesOnWhenItsServerOpensItsStoreAnew(t *testing.T) {
	t.Parallel()
	s := server(t)
	w := start(t, s, greeter())
	require.Eventually(t, func() bool { return w.Ready() == nil }, 20*time.Second, 10*time.Millisecond)
	c := client(t, s)
	for i := range 2 {
		one := turn(strconv.Itoa(i), map[string]any{"name": "Ada"})
		publish(t, c, one)
		require.NoError(t, s.Reopen())
		require.True(t, await(t, c, one.TurnID).Success)
	}
	require.Eventually(t, func() bool { return w.Ready() == nil }, 20*time.Second, 10*time.Millisecond)
	requireDrained(t, s)
}
