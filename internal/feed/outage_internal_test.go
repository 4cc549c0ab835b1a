package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOutageIsReportedOnceAndThenRarely(t *testing.T) {
	t.Parallel()
	var o outage
	now, lines := time.Unix(0, 0), 0
	for range 36_000 { // an hour of failures
		if o.report(now, now) {
			lines++
		}
		now = now.Add(100 * time.Millisecond)
	}
	require.Equal(t, 11, lines)
	require.True(t, o.over())
	require.False(t, o.over())
	require.Equal(t, tailLongest, o.pause())
	require.True(t, o.report(now.Add(-time.Minute), now), "a consumer that had followed is another outage")
	require.Equal(t, tailPause, o.pause())
	require.False(t, o.report(now, now))
}
