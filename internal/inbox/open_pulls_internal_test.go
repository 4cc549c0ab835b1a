package inbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Others of the same worker keep the consumer from looking silent.
func TestPullThatTheServerHasDroppedSilentlyIsForgotten(t *testing.T) {
	t.Parallel()
	var p pulls
	p.add(10, 0) // dropped
	p.add(5, 20*time.Second)
	require.Equal(t, 15, p.total())
	p.expire(pullExpiry)
	require.Equal(t, 15, p.total())
	p.expire(pullExpiry + 2*heartbeat + 1)
	require.Equal(t, 5, p.total())
}

func TestMessagesAreTakenFromTheOldestPull(t *testing.T) {
	t.Parallel()
	var p pulls
	p.add(3, 0)
	p.add(3, time.Second)
	p.took(4)
	require.Equal(t, 2, p.total())
	p.expire(pullExpiry + 2*heartbeat + 1) // the oldest is gone already
	require.Equal(t, 2, p.total())
	p.took(9) // a server that brings more than was asked for
	require.Zero(t, p.total())
	require.Empty(t, p.open)
}
