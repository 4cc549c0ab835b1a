package inbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestDrainNaksBufferedMessagesThoughEverySlotIsTaken(t *testing.T) {
	t.Parallel()
	const slots = 3
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 40) // handled fast, so that messages are pulled ahead
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	var busy atomic.Int32
	release := make(chan struct{})
	in := run(t, s.Connect(), inbox.Options{Slots: slots, SoftStop: 20 * time.Second, Handle: func(_ context.Context, d *inbox.Delivery) {
		if d.Seq > 40 {
			busy.Add(1)
			<-release
		}
		d.Ack()
	}})
	empty(t, stream)
	put(t, js, 2*slots)
	require.Eventually(t, func() bool { return busy.Load() == slots && in.Held() == 2*slots }, 10*time.Second, time.Millisecond)
	c, err := js.Consumer(t.Context(), "W", "c")
	require.NoError(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- in.stop() }()
	batch, err := c.Fetch(slots, jetstream.FetchMaxWait(5*time.Second))
	require.NoError(t, err)
	given := 0
	for m := range batch.Messages() {
		given++
		require.NoError(t, m.Ack())
	}
	require.Equal(t, slots, given)
	require.Equal(t, int32(slots), busy.Load(), "all slots are still taken, and nothing else was begun")
	close(release)
	require.NoError(t, <-stopped)
	empty(t, stream)
}
