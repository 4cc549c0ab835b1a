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
	g := newGroup(2, time.Hour, &counters{}, func(*group) *child {
		c := newChild(launch{}, slog.New(slog.DiscardHandler))
		made = append(made, c)
		return c
	})
	for range maxAsking {
		c, err := g.acquire(t.Context(), "test", "f")
		require.NoError(t, err)
		require.True(t, g.leaveRoom(c))
	}
	require.Len(t, made, 1)
	c, err := g.acquire(t.Context(), "test", "f")
	require.NoError(t, err)
	require.False(t, g.leaveRoom(c), "it keeps its room")
	other, err := g.acquire(t.Context(), "test", "f")
	require.NoError(t, err)
	require.NotEqual(t, c, other, "so there is none for others")

	g.takeRoom(c, true)
	g.release(c, false)
	require.True(t, g.leaveRoom(c), "one that goes on makes room to wait")
	for range maxAsking {
		require.False(t, g.all[c].unused())
		g.takeRoom(c, false)
		g.release(c, false)
	}
	require.True(t, g.all[c].unused())
	require.True(t, g.all[c].idle.Stop())
	g.release(other, false)
	require.True(t, g.all[other].idle.Stop())
}
