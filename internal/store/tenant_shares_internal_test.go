package store

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTenantLeavesAsMuchOfTheStoreAsItTakes: however much it sends, and another tenant has room then. Half a day later it
// may take half of the rest.
func TestTenantLeavesAsMuchOfTheStoreAsItTakes(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	now := time.Now()
	for workers, part := range map[int]float64{1: 1. / 2, 2: 2. / 3, 6: 6. / 7} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			shares := make([]Shares, workers)
			left, look, taken := int64(1000*mib), uint64(1), int64(0)
			flood := func(at time.Time) {
				for refused := 0; refused < workers; {
					refused = 0
					for i := range shares {
						if !shares[i].Take("acme", mib, left, look, at) {
							refused++
							continue
						}
						taken += mib
					}
					look++
					left = 1000*mib - taken
				}
			}
			for i := range shares {
				require.True(t, shares[i].Take("beta", 1, left, look, now))
			}
			flood(now)
			require.InDelta(t, part*1000*mib, float64(taken), float64(10*mib*workers))
			require.True(t, shares[0].RefusedSince("acme", now.Add(-time.Second)))
			require.False(t, shares[0].RefusedSince("beta", now.Add(-time.Second)))
			require.True(t, shares[0].Take("beta", mib, left, look, now))
			flood(now.Add(halfLife))
			require.Less(t, taken, int64(1000*mib))
			require.True(t, shares[0].Take("beta", mib, left, look, now))
		})
	}
}

// TestOnlyTenantHasTheWholeStore: and no more than that between two reads.
func TestOnlyTenantHasTheWholeStore(t *testing.T) {
	t.Parallel()
	var s Shares
	now := time.Now()
	require.True(t, s.Take("beta", 900, 1000, 1, now.Add(-forgets)), "nothing since")
	for range 10 {
		require.True(t, s.Take("acme", 100, 1000, 2, now))
	}
	require.False(t, s.Take("acme", 100, 1000, 2, now))
	require.True(t, s.Take("acme", 100, 1000, 3, now))
	s.Add("acme", -1100, now)
	require.True(t, s.Take("acme", 1000, 1000, 3, now))
}

// TestTenantsThatAreCountedAreBounded: those with the least stored are forgotten.
func TestTenantsThatAreCountedAreBounded(t *testing.T) {
	t.Parallel()
	var s Shares
	now := time.Now()
	require.True(t, s.Take("acme", 1<<30, 1<<40, 1, now))
	for i := range 2 * maxTenants {
		require.True(t, s.Take(strconv.Itoa(i), 1, 1<<40, 1, now))
	}
	require.LessOrEqual(t, len(s.of), maxTenants)
	require.InDelta(t, 1<<30, s.of["acme"].bytes, 1)
}
