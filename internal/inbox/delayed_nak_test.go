package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
)

// TestNakWithAShortDelayIsDelayedHere: the server is asked for no delay, which would hold up all
// that it has to deliver again. What has to wait for longer is left to the server.
func TestNakWithAShortDelayIsDelayedHere(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 0)
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	settled := make(chan string, 8)
	_, err = nc.Subscribe("$JS.ACK.W.c.>", func(m *nats.Msg) { settled <- string(m.Data) })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	const short, long = 20 * time.Millisecond, ackWait / 2
	var given time.Time
	run(t, s.Connect(), inbox.Options{Slots: 1, Handle: func(_ context.Context, d *inbox.Delivery) {
		switch d.Delivered {
		case 1:
			given = time.Now()
			d.Nak(short)
		case 2:
			require.GreaterOrEqual(t, time.Since(given), short)
			d.Nak(long)
		default:
			d.Ack()
		}
	}})
	put(t, js, 1)
	require.Equal(t, "-NAK", <-settled)
	require.Equal(t, `-NAK {"delay": 500000000}`, <-settled)
	require.Equal(t, "+ACK", <-settled)
	empty(t, stream)
}

func TestDelayedNaksTakeNoSlotAndAreSentByADrain(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 0)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	const messages, slow = 8, 20 * time.Second
	change(t, js, func(c *jetstream.ConsumerConfig) { c.AckWait = 4 * slow })
	seen := make(chan uint64, messages)
	in := run(t, s.Connect(), inbox.Options{AckWait: 4 * slow, Slots: 2, Handle: func(_ context.Context, d *inbox.Delivery) {
		d.Nak(slow)
		seen <- d.Seq
	}})
	put(t, js, messages)
	for range messages {
		<-seen
	}
	require.Equal(t, messages, in.Held())
	require.NoError(t, in.stop())
	c, err := js.Consumer(t.Context(), "W", "c")
	require.NoError(t, err)
	batch, err := c.Fetch(messages, jetstream.FetchMaxWait(10*time.Second))
	require.NoError(t, err)
	for m := range batch.Messages() {
		require.NoError(t, m.Ack())
	}
	empty(t, stream)
}
