package inbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
)

// deaf is a link on which nothing happens.
type deaf struct{}

func (deaf) Publish(string, []byte) error                { return nil }
func (deaf) PublishRequest(string, string, []byte) error { return nil }
func (deaf) FlushTimeout(time.Duration) error            { return nil }
func (deaf) IsConnected() bool                           { return true }

// A process that was paused runs its handlers again before its timers, so nothing has ended the lease yet.
func TestDeliveryThatIsLostWhenASlotIsFreeReachesNoHandler(t *testing.T) {
	t.Parallel()
	for waited, handed := range map[time.Duration]bool{ackWait / 2: true, ackWait + 1: false} {
		t.Run(waited.String(), func(t *testing.T) {
			t.Parallel()
			var now time.Duration
			in := inbox.NewSteps(deaf{}, func() int { return 0 }, func() time.Duration { return now },
				inbox.Options{Stream: "W", Consumer: "c", Slots: 2, AckWait: ackWait})
			in.Probe()
			reply := fmt.Sprintf("$JS.ACK.W.c.1.1.1.%d.0", time.Now().UnixNano())
			require.NotNil(t, in.Receive(&nats.Msg{Subject: "w", Reply: reply, Sub: &nats.Subscription{}}))
			now = waited
			d := in.Next()
			require.Equal(t, handed, d != nil)
			again := in.Receive(&nats.Msg{Subject: "w", Reply: reply, Sub: &nats.Subscription{}})
			require.Equal(t, handed, again == nil, "a lost one is accepted again")
		})
	}
}
