package inbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
)

// F05: see docs/faults.md.
func TestHeartbeatsFollowAnAckWaitThatWasLowered(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 0)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	set := func(wait time.Duration) {
		change(t, js, func(c *jetstream.ConsumerConfig) { c.AckWait = wait })
	}
	set(30 * time.Second)
	began, release := make(chan uint64, 2), make(chan struct{})
	run(t, s.Connect(), inbox.Options{AckWait: 30 * time.Second, Reread: 20 * time.Millisecond, Slots: 1, Handle: func(_ context.Context, d *inbox.Delivery) {
		began <- d.Delivered
		<-release
		d.Ack()
	}})
	put(t, js, 1)
	<-began
	set(ackWait)
	c, err := js.Consumer(t.Context(), "W", "c")
	require.NoError(t, err)
	_, err = c.Next(jetstream.FetchMaxWait(4 * ackWait))
	require.ErrorIs(t, err, nats.ErrTimeout, "it was delivered again")
	close(release)
	empty(t, stream)
}

func TestAckWaitThatWasLoweredWhileTheConnectionWasLostIsReadAfterTheReconnect(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 0)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	change(t, js, func(c *jetstream.ConsumerConfig) { c.AckWait = 30 * time.Second })
	proxy, nc := behindProxy(t, s)
	began, release := make(chan *inbox.Delivery, 1), make(chan struct{})
	run(t, nc, inbox.Options{AckWait: 30 * time.Second, Reread: time.Hour, Slots: 4, Handle: func(_ context.Context, d *inbox.Delivery) {
		began <- d
		<-release
		d.Ack()
	}})
	put(t, js, 1)
	d := <-began
	proxy.Refuse(true)
	proxy.Reset()
	require.Eventually(t, func() bool { return !nc.IsConnected() }, 10*time.Second, time.Millisecond)
	change(t, js, func(c *jetstream.ConsumerConfig) { c.AckWait = 2 * time.Second })
	proxy.Heal()
	require.Eventually(t, func() bool { return d.AckWait() == 2*time.Second }, 10*time.Second, time.Millisecond)
	close(release)
	empty(t, stream)
}

// change changes the consumer under those who pull from it.
func change(t *testing.T, js jetstream.JetStream, do func(*jetstream.ConsumerConfig)) {
	t.Helper()
	c, err := js.Consumer(t.Context(), "W", "c")
	require.NoError(t, err)
	config := c.CachedInfo().Config
	do(&config)
	_, err = js.UpdateConsumer(t.Context(), "W", config)
	require.NoError(t, err)
}

func TestConfigurationOfTheConsumerIsReadAgain(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 0)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	var places atomic.Int64
	run(t, s.Connect(), inbox.Options{
		Slots: 1, Reread: 20 * time.Millisecond, Handle: func(_ context.Context, d *inbox.Delivery) { d.Ack() },
		OnConfig: func(c jetstream.ConsumerConfig) { places.Store(int64(c.MaxAckPending)) },
	})
	change(t, js, func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 321 })
	require.Eventually(t, func() bool { return places.Load() == 321 }, 10*time.Second, 5*time.Millisecond)
	empty(t, stream)
}
