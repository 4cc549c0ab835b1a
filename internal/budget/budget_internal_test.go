package budget

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// taken is how many places a tenant gets before it is refused one.
func (b *Budget) taken(app string) (n int) {
	for b.Take(app) {
		n++
	}
	return n
}

func TestTenantTakesHalfOfThePlacesAndLeavesSomeToEveryOther(t *testing.T) {
	t.Parallel()
	b := New(100)
	require.Equal(t, 50, b.taken("flood"))
	for i := range 5 { // others that flood as well take half of what is left
		require.Positive(t, b.taken(strconv.Itoa(i)))
	}
	require.True(t, b.Take("new"))
	for range 50 {
		b.Free("flood")
	}
	require.True(t, b.Take("flood"))
	require.Len(t, b.of, 7, "a tenant without places is forgotten")
}

func TestPlaceThatIsTakenForATimeIsFreeAfterIt(t *testing.T) {
	t.Parallel()
	b, now := New(2), time.Unix(0, 0)
	require.True(t, b.TakeFor("a", 1, now, 2*time.Second))
	require.False(t, b.TakeFor("a", 1, now, time.Second))
	require.False(t, b.TakeFor("a", 1, now.Add(2*time.Second-1), time.Second))
	require.True(t, b.TakeFor("a", 1, now.Add(2*time.Second), time.Second))
	require.True(t, b.TakeFor("a", 1, now.Add(time.Hour), time.Second))
	require.Len(t, b.ends, 1)
	require.Equal(t, 1, b.used)
}

func TestSmallestBudgetHasAPlace(t *testing.T) {
	t.Parallel()
	b := New(0)
	require.True(t, b.Take("a"))
	require.False(t, b.Take("b"))
	b.Free("a")
	require.True(t, b.Take("b"))
}

func TestPlacesThatAreTakenTogetherAreFreeTogether(t *testing.T) {
	t.Parallel()
	b, now := New(10), time.Now()
	require.False(t, b.TakeFor("a", 6, now, time.Second), "more than are left to others")
	require.True(t, b.TakeFor("a", 4, now, time.Second))
	require.False(t, b.TakeFor("a", 2, now, time.Second))
	require.True(t, b.TakeFor("a", 1, now, time.Second))
	require.True(t, b.TakeFor("b", 2, now, time.Second))
	require.True(t, b.TakeFor("a", 5, now.Add(time.Second), time.Second))
}
