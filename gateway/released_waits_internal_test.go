package gateway

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTenantThatStopsManyRunsHasNoOtherForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	r := newReleasedWaits(100, time.Minute)
	var others []stoppedWait
	for n := range 40 {
		w := stoppedWait{"tenant" + strconv.Itoa(n%4), "c", strconv.Itoa(n)}
		others = append(others, w)
		r.Add(w, now)
	}
	for n := range 1_000 {
		r.Add(stoppedWait{"greedy", "c", strconv.Itoa(n)}, now)
	}
	for _, w := range others {
		require.True(t, r.Has(w, now), "%v", w)
	}
	require.True(t, r.Has(stoppedWait{"greedy", "c", "999"}, now), "its newest")
	require.False(t, r.Has(stoppedWait{"greedy", "c", "0"}, now))
	require.Len(t, r.known, 100)
	r.Add(others[0], now.Add(30*time.Second))
	require.True(t, r.Has(others[0], now.Add(time.Minute)))
	require.False(t, r.Has(others[1], now.Add(time.Minute)), "for a while")
	for n := range 1_000 {
		r.Add(stoppedWait{strconv.Itoa(n), "c", "m"}, now)
	}
	require.Len(t, r.known, 100)
	require.LessOrEqual(t, len(r.of), 100)
}
