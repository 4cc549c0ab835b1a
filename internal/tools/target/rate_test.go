package target_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestRateThatCannotBeKeptIsRefused(t *testing.T) {
	t.Parallel()
	for _, r := range []target.Rate{
		{},
		{Calls: 1, Per: time.Second},
		{Calls: 100, Per: 24 * time.Hour},
		{Calls: 1, Per: 24 * time.Hour},
		{Calls: 1_000_000, Per: time.Second},
		{Calls: 3, Per: time.Second, Burst: 100_000},
		{Calls: 10, Per: time.Minute, Burst: 1},
	} {
		require.NoError(t, r.Check(), "%+v", r)
		require.Positive(t, r.Interval())
		require.Positive(t, r.Size())
	}
	for _, r := range []target.Rate{
		{Calls: 1},
		{Calls: math.MaxInt, Per: time.Second},
		{Burst: 1},
		{Calls: -1, Per: time.Second},
		{Calls: 1, Per: -1},
		{Calls: 1, Per: time.Second, Burst: -1},
		{Calls: 1, Per: 25 * time.Hour},
		{Calls: 1, Per: time.Hour, Burst: 25},
		{Calls: 1, Per: time.Second, Burst: math.MaxInt},
	} {
		require.Error(t, r.Check(), "%+v", r)
	}
}

func TestIntervalIsNeverShorterThanTheRate(t *testing.T) {
	t.Parallel()
	r := target.Rate{Calls: 3, Per: time.Second}
	require.Equal(t, 333_333_334*time.Nanosecond, r.Interval())
	require.Equal(t, 3, r.Size())
	require.Equal(t, 7, target.Rate{Calls: 3, Per: time.Second, Burst: 7}.Size())
}
