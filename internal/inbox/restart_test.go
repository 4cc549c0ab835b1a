package inbox_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
)

// A server that has started again counts the ack wait of a delivery from when the stream took the message, unless there
// was a heartbeat. The first message shows what happens without one, the second is refreshed by its handler. The
// server reads heartbeats and acknowledgements from one queue: when it has taken the ack of the third message, which
// is sent last, it has the heartbeat too.
func TestRefreshedMessageOfABacklogIsNotDeliveredAgainByAServerThatStartsAgain(t *testing.T) {
	t.Parallel()
	const wait = 8 * time.Second
	var o embedded.Options
	s := oneturntest.NewServer(t, func(options *embedded.Options) { o = *options })
	stream := queue(t, s, 3)
	waited := time.After(wait)
	config := jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: wait}
	_, err := stream.UpdateConsumer(t.Context(), config)
	require.NoError(t, err)
	<-waited // the age is measured by the clock of the server

	proxy, nc := behindProxy(t, s)
	began, refreshed, finish := make(chan struct{}), make(chan struct{}), make(chan struct{})
	run(t, nc, inbox.Options{AckWait: wait, Slots: 3, Handle: func(_ context.Context, d *inbox.Delivery) {
		switch d.Seq {
		case 1:
			close(began)
		case 2:
			d.Refresh()
			close(refreshed)
		case 3:
			<-refreshed
			d.Ack()
			return
		}
		<-finish
		d.Leave()
	}})
	t.Cleanup(func() { close(finish) })
	<-began
	require.Eventually(t, func() bool {
		info, err := stream.Consumer(t.Context(), "c")
		return err == nil && info.CachedInfo().NumAckPending == 2 && info.CachedInfo().NumPending == 0
	}, wait/2, time.Millisecond)
	proxy.Refuse(true)
	proxy.Reset()
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	o.Listen = u.Host
	again, err := embedded.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, again.Stop()) })
	other, err := nats.Connect(again.URL())
	require.NoError(t, err)
	t.Cleanup(other.Close)
	js, err := jetstream.New(other)
	require.NoError(t, err)
	c, err := js.Consumer(t.Context(), "W", "c")
	require.NoError(t, err)
	batch, err := c.Fetch(2, jetstream.FetchMaxWait(wait/4))
	require.NoError(t, err)
	var delivered []uint64
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		require.NoError(t, err)
		delivered = append(delivered, meta.Sequence.Stream)
	}
	require.Equal(t, []uint64{1}, delivered)
}
