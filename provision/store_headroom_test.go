package provision_test

import (
	"math"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

// TestWhatGrowsInANearlyFullStoreLeavesRoomForTheEndsOfTurns: in a store of any size, and large stores keep the defaults.
func TestWhatGrowsInANearlyFullStoreLeavesRoomForTheEndsOfTurns(t *testing.T) {
	t.Parallel()
	for limit := int64(1 << 30); limit < 1<<46; limit += limit / 7 {
		o := provision.Options{}.Within(limit)
		require.LessOrEqual(t, 2*o.InMaxBytes+o.DeadMaxBytes, limit*13/100, limit)
		require.GreaterOrEqual(t, o.InMaxBytes, min(limit/40, provision.DefaultInMaxBytes), limit)
		if limit >= 10<<30 {
			require.EqualValues(t, provision.DefaultInMaxBytes, o.InMaxBytes)
			require.EqualValues(t, provision.DefaultDeadMaxBytes, o.DeadMaxBytes)
		}
	}
	set := provision.Options{InMaxBytes: -1, DeadMaxBytes: 1 << 20}
	require.Equal(t, set, set.Within(1<<30))
}

func TestGrowthIsMeasuredFromTheStreamsAsTheyAre(t *testing.T) {
	t.Parallel()
	js := server(t)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	apply(t, js, provision.Options{InMaxBytes: 64 << 20, DeadMaxBytes: 16 << 20})
	bytes, err := provision.Growth(t.Context(), js, space)
	require.NoError(t, err)
	require.EqualValues(t, 144<<20, bytes)
	edit(t, js, "ONETURN_IN", func(c *jetstream.StreamConfig) { c.MaxBytes = -1 })
	bytes, err = provision.Growth(t.Context(), js, space)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, bytes)
}
