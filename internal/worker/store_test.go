package worker_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

// F18: see docs/faults.md. Not even one that a pull which was sent before brings.
func TestNoNewTurnIsClaimedWhileTheStoreIsNearlyFull(t *testing.T) {
	t.Parallel()
	s := server(t)
	var used atomic.Int64
	used.Store(10)
	c := greeter()
	c.StoreUse = func() (int64, int64, error) { return used.Load() << 20, 100 << 20, nil }
	w := start(t, s, c)
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, time.Millisecond)
	used.Store(85)
	require.Eventually(t, func() bool { return w.Ready() != nil }, 10*time.Second, time.Millisecond)
	require.ErrorContains(t, w.Ready(), "the store is nearly full: no new turns are claimed")
	cl := client(t, s)
	turns := make([]*oneturn.Turn, 20)
	for i := range turns {
		turns[i] = turn(strconv.Itoa(i), map[string]any{"name": "Ada"})
	}
	publish(t, cl, turns...)
	require.Eventually(t, func() bool { return underWay(t, s) == len(turns) }, 10*time.Second, 5*time.Millisecond, "they are requeued")
	require.Zero(t, records(t, s))
	used.Store(84)
	for _, one := range turns {
		require.True(t, await(t, cl, one.TurnID).Success)
	}
}

// F18: see docs/faults.md.
func TestParkedTurnEndsWhileTheStoreIsNearlyFull(t *testing.T) {
	t.Parallel()
	s := server(t)
	var used atomic.Int64
	used.Store(10)
	config := questioner(oneturn.Replay, whoAreYou)
	config.ParkImmediately = true
	config.StoreUse = func() (int64, int64, error) { return used.Load() << 20, 100 << 20, nil }
	w := start(t, s, config)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	require.Equal(t, "t1/1", questions(t, c, 1)[0].ToolCallID)
	requireDrained(t, s)
	used.Store(86)
	require.Eventually(t, func() bool { return w.Ready() != nil }, 10*time.Second, 10*time.Millisecond)
	v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: one.App, Chat: one.Chat, ToolCallID: "t1/1"}, Value: "Ada", Workflow: one.Workflow})
	require.NoError(t, err)
	require.Equal(t, events.AnswerAccepted, v.Code)
	require.True(t, await(t, c, one.TurnID).Success)
}

// records is how many records the journal has.
func records(t *testing.T, s *oneturntest.Server) uint64 {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_ONETURN_TURNS")
	require.NoError(t, err)
	return stream.CachedInfo().State.Msgs
}

// TestWorkerContinuesWhenItsServerReopensItsStore: as an embedded server does when a full disk
// has room again. Every turn that was accepted ends once, and the worker does not.
func TestWorkerContinuesWhenItsServerReopensItsStore(t *testing.T) {
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

// H25: see docs/faults.md. One that publishes more than the store has room for waits, and the turns of
// another run.
func TestTenantLeavesRoomInTheStoreToOthers(t *testing.T) {
	t.Parallel()
	const limit, size, n = 32 << 20, 400 << 10, 100
	s := server(t)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stored := func(names ...string) (bytes int64) {
		for _, name := range names {
			stream, err := js.Stream(t.Context(), name)
			require.NoError(t, err)
			bytes += int64(stream.CachedInfo().State.Bytes)
		}
		return bytes
	}
	config := greeter()
	config.StoreUse = func() (int64, int64, error) { return stored("KV_ONETURN_TURNS", "OBJ_ONETURN_BLOBS"), limit, nil }
	w := start(t, s, config)
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, time.Millisecond)
	c := client(t, s)
	do := func(app, key, name string) *oneturn.Turn {
		one := turn(key, map[string]any{"name": name})
		one.App = app
		publish(t, c, one)
		return one
	}
	require.True(t, await(t, c, do("beta", "b1", "Ada").TurnID).Success)
	big := strings.Repeat("x", size)
	for i := range n {
		do("acme", strconv.Itoa(i), big)
	}
	require.Eventually(t, func() bool { return underWay(t, s) > 0 }, 20*time.Second, 5*time.Millisecond, "they wait")
	for i := range 10 {
		require.True(t, await(t, c, do("beta", "b"+strconv.Itoa(i+2), "Ada").TurnID).Success)
	}
	require.Less(t, stored("KV_ONETURN_TURNS", "OBJ_ONETURN_BLOBS"), int64(limit/20*17))
	require.NoError(t, w.Ready(), "the store has room")
}
