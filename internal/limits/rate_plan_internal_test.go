package limits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/internal/tools/target"
)

// TestPlanNeverExceedsTheRate plans for calls that come at any times, in batches of any size.
func TestPlanNeverExceedsTheRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := target.Rate{
			Calls: rapid.IntRange(1, 50).Draw(t, "calls"), Per: time.Duration(rapid.IntRange(1, 10_000).Draw(t, "per")) * time.Millisecond,
			Burst: rapid.IntRange(0, 20).Draw(t, "burst"),
		}
		now := time.Unix(1e9, 0)
		var next time.Time
		var places []time.Time
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "pause")) * time.Millisecond)
			latest := make([]time.Time, rapid.IntRange(1, 30).Draw(t, "batch"))
			for i := range latest {
				latest[i] = now.Add(time.Duration(rapid.IntRange(-1, int(MaxWait/time.Millisecond)).Draw(t, "latest")) * time.Millisecond)
			}
			var offers []offer
			offers, next = plan(rate, next, now, latest)
			require.Len(t, offers, len(latest))
			for i, o := range offers {
				require.False(t, o.at.Before(now))
				require.Equal(t, !o.at.After(latest[i]), o.taken)
				if o.taken {
					places = append(places, o.at)
				}
			}
		}
		for i := range places {
			require.False(t, i > 0 && places[i].Before(places[i-1]))
			for j := i; j < len(places); j++ {
				require.LessOrEqual(t, j-i+1, rate.Size()+int(places[j].Sub(places[i])/rate.Interval()))
			}
		}
	})
}

func TestRateThatWasSlowerBeforeDoesNotHoldUpForLong(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	rate := target.Rate{Calls: 10, Per: time.Second, Burst: 2}
	latest := []time.Time{now.Add(MaxWait), now.Add(MaxWait)}
	offers, next := plan(rate, now.Add(24*time.Hour), now, latest)
	require.Equal(t, []offer{{now, true}, {now.Add(100 * time.Millisecond), true}}, offers)
	require.Equal(t, now.Add(300*time.Millisecond), next)
}
