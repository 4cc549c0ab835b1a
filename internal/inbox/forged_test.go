package inbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
)

// pullsOf returns the reply subject of the next pull; the tests have more rights than a service.
func pullsOf(t *testing.T, s *oneturntest.Server) func() string {
	t.Helper()
	nc := s.Connect()
	pulls, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.W.c")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return func() string {
		m, err := pulls.NextMsg(10 * time.Second)
		require.NoError(t, err)
		return m.Reply
	}
}

func TestSubjectOfPullsCannotBeGuessed(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	queue(t, s, 0)
	pull := pullsOf(t, s)
	names := map[string]bool{}
	for range 2 {
		run(t, s.Connect(), inbox.Options{Slots: 1, Handle: func(_ context.Context, d *inbox.Delivery) { d.Ack() }})
		name := pull()
		require.Regexp(t, `^_INBOX\.[A-Z2-7]{26}$`, name)
		require.False(t, names[name])
		names[name] = true
	}
}

// lines takes what a logger writes.
type lines func(line []byte)

func (l lines) Write(p []byte) (int, error) {
	l(p)
	return len(p), nil
}

// Even a sender that knows the subject of the pulls changes nothing with forged statuses and deliveries: the server decides whether the consumer exists, and a delivery belongs to it.
func TestForgedStatusesAndDeliveriesChangeNothing(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 0)
	pull := pullsOf(t, s)
	var handled atomic.Int32
	var ignored atomic.Bool
	log := slog.New(slog.NewTextHandler(lines(func(line []byte) {
		if bytes.Contains(line, []byte("does not confirm it")) {
			ignored.Store(true)
		}
	}), nil))
	in := run(t, s.Connect(), inbox.Options{
		Slots: 2, Logger: log,
		Handle: func(_ context.Context, d *inbox.Delivery) {
			handled.Add(1)
			d.Ack()
		},
	})
	subject, forger := pull(), s.Connect()
	acks, err := forger.SubscribeSync("$JS.ACK.OTHER.>")
	require.NoError(t, err)
	for range 3 {
		for _, text := range []string{"Consumer Deleted", "Consumer is push based"} {
			require.NoError(t, forger.PublishMsg(&nats.Msg{Subject: subject, Header: nats.Header{"Status": {"409"}, "Description": {text}}}))
		}
		require.NoError(t, forger.PublishRequest(subject, "$JS.ACK.OTHER.c.1.1.1.1700000000000000000.0", []byte("forged")))
		require.NoError(t, forger.PublishRequest(subject, "$JS.ACK.W.other.1.1.1.1700000000000000000.0", []byte("forged")))
		require.NoError(t, forger.Publish(subject, []byte("forged")))
	}
	require.NoError(t, forger.Flush())
	require.Eventually(t, ignored.Load, 10*time.Second, time.Millisecond)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	put(t, js, 5)
	empty(t, stream)
	require.Equal(t, int32(5), handled.Load())
	require.NoError(t, in.stop())
	n, _, err := acks.Pending()
	require.NoError(t, err)
	require.Zero(t, n, "a forged delivery was settled")
}

func TestConsumerThatIsDeletedEndsTheInbox(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	queue(t, s, 0)
	pull := pullsOf(t, s)
	in, err := inbox.New(s.Connect(), inbox.Options{Stream: "W", Consumer: "c", Slots: 1, AckWait: ackWait})
	require.NoError(t, err)
	done := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { done <- in.Run(context.WithoutCancel(t.Context()), errStopping) })
	pull()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteConsumer(t.Context(), "W", "c"))
	require.ErrorIs(t, <-done, inbox.ErrGone)
	running.Wait()
}
