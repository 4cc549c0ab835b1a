package recent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestKeysAreKnownUntilSoManyHaveFollowed(t *testing.T) {
	t.Parallel()
	s := New[int](3, 0)
	require.False(t, s.Has(0, time.Now()), "the zero key is a key")
	for i := range 10 {
		require.False(t, s.Add(i, time.Now()))
		require.True(t, s.Add(i, time.Now()), "twice takes no room")
		for old := range i {
			require.Equal(t, old > i-3, s.Has(old, time.Now()), "%d after %d", old, i)
		}
	}
	require.Len(t, s.known, 3)
}

func TestKeysAreForgottenWithTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	s := New[string](3, time.Minute)
	require.False(t, s.Add("a", now))
	now = now.Add(time.Minute - 1)
	require.True(t, s.Has("a", now))
	now = now.Add(1)
	require.False(t, s.Has("a", now))
	require.False(t, s.Add("a", now), "it is as new")
	require.True(t, s.Has("a", now))
	require.Len(t, s.ring, 1)
	now = now.Add(-time.Hour)
	require.False(t, s.Has("a", now), "a clock that was set back")
}
