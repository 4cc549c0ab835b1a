package handlers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecentKeysAreKnownUntilSoManyHaveFollowed(t *testing.T) {
	t.Parallel()
	r := newRecent[int](3)
	require.False(t, r.has(0), "the zero key is a key")
	for i := range 10 {
		require.False(t, r.add(i))
		require.True(t, r.add(i), "twice takes no room")
		for old := range i {
			require.Equal(t, old > i-3, r.has(old), "%d after %d", old, i)
		}
	}
	require.Len(t, r.known, 3)
}
