package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The error handling of the set-up is left out of the example's point.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Memory: true})
	if err != nil {
		panic(err)
	}
	defer func() { _ = server.Stop() }()
	nc, _ := server.Conn()
	defer nc.Close()
	js, _ := jetstream.New(nc)
	_, _ = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "WORK", Subjects: []string{"work"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage,
	})
	_, _ = js.CreateConsumer(ctx, "WORK", jetstream.ConsumerConfig{Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second})
	_, _ = js.Publish(ctx, "work", []byte("hello"))

	in, err := inbox.New(nc, inbox.Options{
		Stream: "WORK", Consumer: "workers", Slots: 4, AckWait: time.Second,
		Handle: func(_ context.Context, d *inbox.Delivery) {
			fmt.Println(string(d.Msg.Data), d.Delivered)
			d.Ack()
			stop()
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(in.Run(ctx, errors.New("stopping")))
	// Output:
	// hello 1
	// <nil>
}

const ackWait = time.Second

// queue makes a work queue with a consumer and n messages.
func queue(t *testing.T, s *oneturntest.Server, n int) jetstream.Stream {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "W", Subjects: []string{"w"}, Retention: jetstream.WorkQueuePolicy})
	require.NoError(t, err)
	_, err = js.CreateConsumer(t.Context(), "W", jetstream.ConsumerConfig{
		Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
	})
	require.NoError(t, err)
	put(t, js, n)
	return stream
}

func put(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	for i := range n {
		_, err := js.Publish(t.Context(), "w", []byte(strconv.Itoa(i)))
		require.NoError(t, err)
	}
}

// running is an inbox that runs until stopped.
type running struct {
	*inbox.Inbox

	stop func() error
}

func run(t *testing.T, nc *nats.Conn, o inbox.Options) running {
	t.Helper()
	o.Stream, o.Consumer = "W", "c"
	if o.AckWait == 0 {
		o.AckWait = ackWait
	}
	in, err := inbox.New(nc, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, errStopping) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return running{in, stop}
}

var errStopping = errors.New("stopping")

func empty(t *testing.T, stream jetstream.Stream) {
	t.Helper()
	require.Eventually(t, func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	}, 20*time.Second, 5*time.Millisecond)
}

// F05: see docs/faults.md.
func TestMessageThatIsHandledForLongIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 3)
	var handled atomic.Int32
	handle := func(ctx context.Context, d *inbox.Delivery) {
		handled.Add(1)
		select {
		case <-time.After(3 * ackWait):
		case <-ctx.Done():
		}
		if d.Fresh() {
			d.Ack()
		}
	}
	run(t, s.Connect(), inbox.Options{Slots: 1, Handle: handle})
	run(t, s.Connect(), inbox.Options{Slots: 2, Handle: handle})
	empty(t, stream)
	require.Equal(t, int32(3), handled.Load())
}

func TestSlowHandlersHoldNoMessagesInReserve(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 4)
	release := make(chan struct{})
	slow := run(t, s.Connect(), inbox.Options{Slots: 2, Handle: func(_ context.Context, d *inbox.Delivery) {
		<-release
		d.Ack()
	}})
	require.Eventually(t, func() bool { return slow.Held() == 2 }, 10*time.Second, time.Millisecond)
	var quick atomic.Int32
	run(t, s.Connect(), inbox.Options{Slots: 2, Handle: func(_ context.Context, d *inbox.Delivery) {
		quick.Add(1)
		d.Ack()
	}})
	require.Eventually(t, func() bool { return quick.Load() == 2 }, 10*time.Second, time.Millisecond)
	close(release)
	empty(t, stream)
}

func TestDrainNaksWhatHasNotBegunAndStopsWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	queue(t, s, 1)
	began := make(chan struct{})
	in := run(t, s.Connect(), inbox.Options{
		Slots: 1, SoftStop: 50 * time.Millisecond,
		Handle: func(ctx context.Context, d *inbox.Delivery) {
			close(began)
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), errStopping) {
				d.Nak(0)
			}
		},
	})
	<-began
	require.NoError(t, in.Ready())
	require.NoError(t, in.stop())
	require.Error(t, in.Ready())
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	c, err := js.Consumer(t.Context(), "W", "c")
	require.NoError(t, err)
	m, err := c.Next(jetstream.FetchMaxWait(ackWait / 2))
	require.NoError(t, err, "the message is there before its ack wait has passed")
	meta, err := m.Metadata()
	require.NoError(t, err)
	require.Equal(t, uint64(2), meta.NumDelivered)
}

func TestRedeliveryOfAMessageThatStillRunsHereIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 1)
	var handled atomic.Int32
	nc := s.Connect()
	release := make(chan struct{})
	var log harness.Output
	run(t, nc, inbox.Options{
		Slots: 2, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Handle: func(_ context.Context, d *inbox.Delivery) {
			handled.Add(1)
			<-release
			d.Ack()
		},
	})
	require.Eventually(t, func() bool { return handled.Load() == 1 }, 10*time.Second, time.Millisecond)
	// A nak by another client makes the server redeliver it immediately.
	require.NoError(t, nc.Publish(fmt.Sprintf("$JS.ACK.W.c.1.1.1.%d.0", time.Now().UnixNano()), []byte("-NAK")))
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "left alone") }, 10*time.Second, time.Millisecond)
	close(release)
	empty(t, stream)
	require.Equal(t, int32(1), handled.Load())
}

// F10: see docs/faults.md.
func TestConsumptionResumesAfterAServerRestart(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	serve := func(listen string) *embedded.Server {
		s, err := embedded.Start(t.Context(), embedded.Options{Listen: listen, Store: store})
		require.NoError(t, err)
		return s
	}
	s := serve("127.0.0.1:0")
	url := s.URL()
	nc, err := nats.Connect(url, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "W", Subjects: []string{"w"}, Retention: jetstream.WorkQueuePolicy})
	require.NoError(t, err)
	_, err = js.CreateConsumer(t.Context(), "W", jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait})
	require.NoError(t, err)
	in := run(t, nc, inbox.Options{Slots: 4, Handle: func(_ context.Context, d *inbox.Delivery) { d.Ack() }})
	put(t, js, 5)
	empty(t, stream)
	require.NoError(t, s.Stop())
	require.Eventually(t, func() bool { return in.Ready() != nil }, 10*time.Second, time.Millisecond)
	s = serve(url[len("nats://"):])
	t.Cleanup(func() { _ = s.Stop() })
	require.Eventually(t, func() bool { return in.Ready() == nil }, 10*time.Second, time.Millisecond)
	put(t, js, 5)
	empty(t, stream)
	require.NoError(t, in.stop())
}

func TestLeaseIsLostWhenNoHeartbeatCanBeSent(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	queue(t, s, 1)
	lost, began := make(chan error, 1), make(chan struct{})
	nc := s.Connect()
	run(t, nc, inbox.Options{Slots: 1, SoftStop: time.Millisecond, Handle: func(_ context.Context, d *inbox.Delivery) {
		close(began)
		<-d.Held().Done()
		lost <- context.Cause(d.Held())
		d.Leave()
	}})
	<-began
	require.NoError(t, s.Stop())
	require.ErrorIs(t, <-lost, inbox.ErrLeaseLost)
}

// TestHandlerThatOutlivesTheDrainLosesItsLease: nothing continues forever in a program that outlives its worker.
func TestHandlerThatOutlivesTheDrainLosesItsLease(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	queue(t, s, 1)
	lost, began := make(chan error, 1), make(chan struct{})
	in := run(t, s.Connect(), inbox.Options{
		Slots: 1, SoftStop: time.Millisecond, HardStop: time.Millisecond,
		Handle: func(_ context.Context, d *inbox.Delivery) {
			close(began)
			<-d.Held().Done() // ignores the end of its context
			lost <- context.Cause(d.Held())
			d.Leave()
		},
	})
	<-began
	require.NoError(t, in.stop())
	require.ErrorIs(t, <-lost, inbox.ErrLeaseLost)
}

func TestMissingConsumerIsAnErrorThatNamesTheFix(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	in, err := inbox.New(s.Connect(), inbox.Options{Stream: "W", Consumer: "c", Slots: 1, AckWait: ackWait})
	require.NoError(t, err)
	err = in.Run(t.Context(), errStopping)
	require.ErrorIs(t, err, inbox.ErrGone)
	require.ErrorContains(t, err, "turnctl provision")
}

// With every slot taken the server holds no pull that it could answer with the end of the
// consumer: the inbox only gets "no responders" for its next one.
func TestConsumerThatVanishesWhileEverySlotIsTakenIsDetected(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	queue(t, s, 1)
	began, release := make(chan struct{}), make(chan struct{})
	in, err := inbox.New(s.Connect(), inbox.Options{
		Stream: "W", Consumer: "c", Slots: 1, AckWait: ackWait,
		Handle: func(_ context.Context, d *inbox.Delivery) {
			close(began)
			<-release
			d.Ack()
		},
	})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- in.Run(context.WithoutCancel(t.Context()), errStopping) }()
	<-began
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "W"))
	close(release)
	select {
	case err = <-done:
		require.ErrorIs(t, err, inbox.ErrGone)
	case <-time.After(20 * time.Second):
		require.Fail(t, "the inbox continues without its consumer")
	}
}
