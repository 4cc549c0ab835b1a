package inbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
)

func TestDeliveryIsLostAnAckWaitAfterItsLastHeartbeatInTime(t *testing.T) {
	t.Parallel()
	const wait = 30 * time.Second
	at := func(s int) time.Duration { return time.Duration(s) * time.Second }
	for name, tc := range map[string]struct {
		beats       [][2]int // seconds after the receipt at which heartbeats were sent, and confirmed
		now         int
		lost, fresh bool
	}{
		"just received":                    {nil, 1, false, true},
		"half the wait":                    {nil, 15, false, true},
		"more than half of it":             {nil, 16, false, false},
		"the wait":                         {nil, 30, false, false},
		"more than the wait":               {nil, 31, true, false},
		"heartbeats in time":               {[][2]int{{10, 10}, {20, 21}, {50, 50}}, 60, false, true},
		"a late heartbeat":                 {[][2]int{{31, 31}}, 32, true, false},
		"one that may have arrived late":   {[][2]int{{10, 31}}, 32, true, false},
		"one that was confirmed late":      {[][2]int{{10, 29}}, 41, true, false},
		"heartbeats after one that failed": {[][2]int{{10, 10}, {41, 41}, {42, 42}}, 43, true, false},
		"a heartbeat noted out of order":   {[][2]int{{20, 20}, {10, 22}}, 34, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o inbox.Ownership
			o.Receive(0)
			for _, beat := range tc.beats {
				o.Beat(at(beat[0]), at(beat[1]), wait)
			}
			require.Equal(t, tc.fresh, o.Fresh(at(tc.now), wait))
			require.Equal(t, tc.lost, o.Lost(at(tc.now), wait))
		})
	}
}

func TestLostDeliveryIsOwnedAgainOnlyByANewerOne(t *testing.T) {
	t.Parallel()
	var o inbox.Ownership
	require.True(t, o.Lost(2*time.Second, time.Second))
	o.Beat(2*time.Second, 2*time.Second, time.Second)
	require.True(t, o.Lost(2*time.Second, time.Hour), "a wait that was raised restores nothing")
	o.Receive(3 * time.Second)
	require.False(t, o.Lost(3*time.Second, time.Second))
}
