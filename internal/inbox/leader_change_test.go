package inbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
)

// TestPullThatANewLeaderDoesNotKnowIsRepeatedSoon plays a cluster whose consumer got another
// leader: it accepts pulls, knows its consumer, and does not know the earlier pulls. A
// turn waits for the election and for this.
func TestPullThatANewLeaderDoesNotKnowIsRepeatedSoon(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	go s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(10*time.Second))
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe("$JS.API.CONSUMER.INFO.W.c", func(m *nats.Msg) {
		_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.consumer_info_response","stream_name":"W","name":"c","config":{"ack_policy":"explicit"}}`))
	})
	require.NoError(t, err)
	pulls := make(chan time.Time, 64)
	_, err = nc.Subscribe("$JS.API.CONSUMER.MSG.NEXT.W.c", func(*nats.Msg) { pulls <- time.Now() })
	require.NoError(t, err)

	in, err := inbox.New(nc, inbox.Options{
		Stream: "W", Consumer: "c", Slots: 4, AckWait: time.Second, Handle: func(_ context.Context, d *inbox.Delivery) { d.Ack() },
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, errors.New("stopping")) }()
	first := <-pulls
	select {
	case again := <-pulls:
		require.Less(t, again.Sub(first), 8*time.Second)
	case <-time.After(8 * time.Second):
		require.Fail(t, "the pull was not repeated within 8 s")
	}
	stop()
	require.NoError(t, <-done)
}
