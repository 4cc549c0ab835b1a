package python

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlySoManyCallsOfAProcessWaitWithoutRoom(t *testing.T) {
	t.Parallel()
	var made []*child
	g := newGroup(2, time.Hour, &counters{}, func(g *group) *child {
		c := newChild(g, launch{}, slog.New(slog.DiscardHandler))
		made = append(made, c)
		return c
	})
	for range maxWaiting {
		c, err := g.acquire(t.Context(), "test", "f")
		require.NoError(t, err)
		require.True(t, g.releaseSlot(c))
	}
	require.Len(t, made, 1)
	c, err := g.acquire(t.Context(), "test", "f")
	require.NoError(t, err)
	require.False(t, g.releaseSlot(c), "it keeps its room")
	other, err := g.acquire(t.Context(), "test", "f")
	require.NoError(t, err)
	require.NotEqual(t, c, other, "so there is none for others")

	g.reacquireSlot(c, true)
	g.release(c, false)
	require.True(t, g.releaseSlot(c), "one that continues makes room to wait")
	for range maxWaiting {
		require.False(t, g.all[c].unused())
		g.reacquireSlot(c, false)
		g.release(c, false)
	}
	require.True(t, g.all[c].unused())
	require.True(t, g.all[c].idle.Stop())
	g.release(other, false)
	require.True(t, g.all[other].idle.Stop())
}
