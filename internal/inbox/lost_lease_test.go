package inbox_test

import (
	"context"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

// outages are those that a client notices, and those that it does not.
func outages() map[string]func(*harness.Proxy) {
	return map[string]func(*harness.Proxy){
		"broken connection": func(p *harness.Proxy) {
			p.Refuse(true)
			p.Reset()
		},
		"half-open connection": func(p *harness.Proxy) {
			p.Stall(harness.Up)
			p.Stall(harness.Down)
		},
	}
}

func behindProxy(t *testing.T, s *oneturntest.Server) (*harness.Proxy, *nats.Conn) {
	t.Helper()
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	proxy := harness.NewProxy(t, u.Host)
	nc, err := nats.Connect(proxy.URL(), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return proxy, nc
}

// owner gets the next message as another worker does, and keeps it in progress.
func owner(t *testing.T, s *oneturntest.Server) (jetstream.Consumer, jetstream.Msg) {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	c, err := js.Consumer(t.Context(), "W", "c")
	require.NoError(t, err)
	m, err := c.Next(jetstream.FetchMaxWait(10 * ackWait))
	require.NoError(t, err)
	return c, m
}

// requireKept requires that the message which its owner keeps in progress is not delivered again.
func requireKept(t *testing.T, c jetstream.Consumer, m jetstream.Msg) {
	t.Helper()
	for range 4 {
		require.NoError(t, m.InProgress())
		other, err := c.Next(jetstream.FetchMaxWait(ackWait / 2))
		require.ErrorIs(t, err, nats.ErrTimeout, "delivered again: %v", other)
	}
}

// F03: see docs/faults.md.
func TestNakOfALostDeliveryTakesNothingFromItsOwner(t *testing.T) {
	t.Parallel()
	for name, cut := range outages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := oneturntest.NewServer(t, oneturntest.Memory)
			queue(t, s, 1)
			proxy, nc := behindProxy(t, s)
			began, giveBack, gaveBack := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var fresh atomic.Bool
			var handled atomic.Int32
			run(t, nc, inbox.Options{Slots: 1, Handle: func(_ context.Context, d *inbox.Delivery) {
				if handled.Add(1) > 1 {
					return
				}
				close(began)
				<-giveBack
				fresh.Store(d.Fresh())
				d.Nak(0)
				close(gaveBack)
			}})
			<-began
			cut(proxy)
			c, m := owner(t, s)
			proxy.Heal()
			require.Eventually(t, func() bool { return nc.FlushTimeout(time.Second) == nil }, 10*time.Second, time.Millisecond)
			close(giveBack)
			<-gaveBack
			require.NoError(t, nc.Flush())
			require.False(t, fresh.Load(), "no heartbeat makes it fresh again")
			requireKept(t, c, m)
			require.Equal(t, int32(1), handled.Load())
		})
	}
}

// F03: see docs/faults.md. The worker continues with heartbeats, but not for what it has lost: should the new
// owner die, the message has to come again.
func TestLostDeliveryIsNotKeptFromComingAgain(t *testing.T) {
	t.Parallel()
	for name, cut := range outages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := oneturntest.NewServer(t, oneturntest.Memory)
			queue(t, s, 1)
			proxy, nc := behindProxy(t, s)
			began, release := make(chan struct{}), make(chan struct{})
			run(t, nc, inbox.Options{Slots: 1, SoftStop: time.Millisecond, Handle: func(_ context.Context, d *inbox.Delivery) {
				close(began)
				<-release
				d.Leave()
			}})
			defer close(release)
			<-began
			cut(proxy)
			c, _ := owner(t, s) // and never answers again
			proxy.Heal()
			require.Eventually(t, func() bool { return nc.FlushTimeout(time.Second) == nil }, 10*time.Second, time.Millisecond)
			_, err := c.Next(jetstream.FetchMaxWait(3 * ackWait))
			require.NoError(t, err)
		})
	}
}

func TestBufferedMessageThatWasLostIsHandledWhenItIsRedelivered(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 40) // handled fast, so that messages are pulled ahead
	proxy, nc := behindProxy(t, s)
	hold, release, handled := make(chan struct{}, 8), make(chan struct{}), make(chan uint64, 8)
	in := run(t, nc, inbox.Options{Slots: 1, Handle: func(_ context.Context, d *inbox.Delivery) {
		switch string(d.Msg.Data) {
		case "busy":
			hold <- struct{}{}
			<-release
		case "buffered":
			if !d.Fresh() {
				d.Leave()
				return
			}
			handled <- d.Delivered
		}
		d.Ack()
	}})
	empty(t, stream)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	for _, body := range []string{"busy", "buffered"} {
		_, err = js.Publish(t.Context(), "w", []byte(body))
		require.NoError(t, err)
	}
	<-hold
	require.Eventually(t, func() bool { return in.Held() == 2 }, 10*time.Second, time.Millisecond)
	proxy.Refuse(true)
	proxy.Reset()
	require.Eventually(t, func() bool { return in.Held() == 1 }, 10*time.Second, time.Millisecond)
	proxy.Heal()
	require.Eventually(t, nc.IsConnected, 10*time.Second, time.Millisecond)
	close(release)
	require.Equal(t, uint64(2), <-handled)
	empty(t, stream)
}

// A run whose lease lapsed while the server was away owns the message again when it is delivered to
// the same worker: no other one has it.
func TestRunOwnsTheMessageThatIsDeliveredToItsWorkerAgain(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 1)
	proxy, nc := behindProxy(t, s)
	began, release := make(chan struct{}), make(chan struct{})
	run(t, nc, inbox.Options{Slots: 2, Handle: func(_ context.Context, d *inbox.Delivery) {
		close(began)
		<-release
		d.Ack()
	}})
	<-began
	proxy.Refuse(true)
	proxy.Reset()
	info := func() (delivered uint64) {
		js, err := jetstream.New(s.Connect())
		require.NoError(t, err)
		c, err := js.Consumer(t.Context(), "W", "c")
		require.NoError(t, err)
		return c.CachedInfo().Delivered.Consumer
	}
	past := time.Now().Add(3 * ackWait / 2)
	require.Eventually(t, func() bool { return time.Now().After(past) }, 10*time.Second, 10*time.Millisecond)
	proxy.Heal()
	require.Eventually(t, func() bool { return info() == 2 }, 10*time.Second, 10*time.Millisecond)
	past = time.Now().Add(3 * ackWait)
	require.Eventually(t, func() bool { return time.Now().After(past) }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, uint64(2), info(), "the run keeps it in progress")
	close(release)
	empty(t, stream)
}
