package gateway

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/gateway/auth"
)

func TestSnapshotsOfAUserAndATenantLeaveMemoryToOthers(t *testing.T) {
	t.Parallel()
	m := newMemory(80)
	ada, bob, eve := auth.Target{App: "a", User: "ada"}, auth.Target{App: "a", User: "bob"}, auth.Target{App: "b", User: "ada"}
	first := m.try(ada, 100)
	require.NotNil(t, first, "what is larger than a share counts as the whole share")
	require.Nil(t, m.try(ada, 1))
	require.NotNil(t, m.try(bob, 10))
	require.NotNil(t, m.try(eve, 10))
	for _, user := range []string{"c", "d"} {
		require.NotNil(t, m.try(auth.Target{App: "a", User: user}, 10))
	}
	require.Nil(t, m.try(auth.Target{App: "a", User: "e"}, 10), "the tenant has its half")
	got := make(chan error, 1)
	go func() {
		r, err := m.take(context.Background(), ada, 5)
		if err == nil {
			r.free()
		}
		got <- err
	}()
	first.free()
	require.NoError(t, <-got)
	require.Equal(t, 40, m.used)
}

func TestChatsThatNothingUsesAreKeptForAShortTimeInBoundedMemory(t *testing.T) {
	t.Parallel()
	l, now := newLoadedChats(), time.Unix(0, 0)
	a := l.enter(chatKey{"app", "a"}, now)
	a.whole = true
	require.Same(t, a, l.enter(chatKey{"app", "a"}, now), "runs share it")
	l.leave(a, now)
	l.leave(a, now)
	require.Equal(t, 1, l.idle.Len())
	require.Same(t, a, l.enter(chatKey{"app", "a"}, now.Add(loadedFor)))
	require.NotSame(t, a, l.enter(chatKey{"app", "a"}, now.Add(loadedFor+1)), "what was erased is not displayed for longer")
	l.leave(a, now.Add(loadedFor+1))
	require.Zero(t, l.idle.Len(), "another reading has taken its place")
	require.Empty(t, l.sizes)
}
