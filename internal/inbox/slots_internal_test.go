package inbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// offline is a link on which nothing is received. It counts what is sent.
type offline struct{ published atomic.Int64 }

func (l *offline) Publish(string, []byte) error              { l.published.Add(1); return nil }
func (*offline) PublishRequest(string, string, []byte) error { return nil }
func (*offline) FlushTimeout(time.Duration) error            { return nil }
func (*offline) IsConnected() bool                           { return true }

// delivery is a message as the server sends it.
func delivery(seq int) *nats.Msg {
	return &nats.Msg{
		Subject: "w", Sub: &nats.Subscription{}, Data: []byte("x"),
		Reply: fmt.Sprintf("$JS.ACK.W.c.1.%d.%d.%d.0", seq, seq, time.Now().UnixNano()),
	}
}

// started returns an inbox that handles what it receives, without a server.
func started(link Link, slots int, handle func(context.Context, *Delivery)) *Inbox {
	epoch := time.Now()
	in := newInbox(link, "", func() time.Duration { return time.Since(epoch) },
		Options{Stream: "W", Consumer: "c", Slots: slots, AckWait: time.Hour, Handle: handle})
	in.handling = context.Background()
	in.start = in.spawn
	return in
}

func TestStormOfReleasedSlotsHandlesEachMessageOnceWithinTheSlots(t *testing.T) {
	t.Parallel()
	const slots, messages = 4, 3000
	var handled [messages + 1]atomic.Int32
	var first, most atomic.Int32 // handlers that have not released their slot yet
	link := &offline{}
	in := started(link, slots, func(_ context.Context, d *Delivery) {
		handled[d.Seq].Add(1)
		most.Store(max(most.Load(), first.Add(1)))
		released := false
		for range rand.IntN(4) {
			if !released {
				first.Add(-1)
			}
			released = true
			d.Release()
			d.Release()
			if rand.IntN(2) == 0 {
				d.Reacquire()
				d.Reacquire()
			}
		}
		if !released {
			first.Add(-1)
		}
		switch rand.IntN(3) {
		case 0:
			d.Ack()
			d.Release() // too late
			d.Reacquire()
		case 1:
			d.Nak(0) // possibly with a released slot
		default:
			d.Leave()
			d.Reacquire()
		}
	})
	var senders sync.WaitGroup
	for part := range 4 {
		senders.Go(func() {
			for seq := 1 + part; seq <= messages; seq += 4 {
				for in.Held() >= 4*slots { // the bound of what is pulled
					runtime.Gosched()
				}
				in.receive(delivery(seq))
			}
		})
	}
	senders.Wait()
	in.handlers.Wait()
	for seq := 1; seq <= messages; seq++ {
		require.Equal(t, int32(1), handled[seq].Load(), seq)
	}
	require.LessOrEqual(t, most.Load(), int32(slots), "handlers that begin have a slot")
	require.Zero(t, in.busy)
	require.Zero(t, in.released)
	require.Zero(t, in.queue.n)
	require.Zero(t, in.Held())
}

func TestHandlerThatEndsWithoutItsSlotFreesNone(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	proceed, released := make(chan struct{}), make(chan *Delivery, 1)
	in := started(&offline{}, 1, func(_ context.Context, d *Delivery) {
		if d.Seq == 1 {
			d.Release()
			released <- d
			return // unsettled
		}
		most.Store(max(most.Load(), running.Add(1)))
		<-proceed
		running.Add(-1)
		d.Ack()
	})
	in.receive(delivery(1))
	d := <-released
	for seq := 2; seq <= 4; seq++ {
		in.receive(delivery(seq))
	}
	d.Ack() // by something else than its handler
	close(proceed)
	in.handlers.Wait()
	require.Equal(t, int32(1), most.Load())
	require.Zero(t, in.busy)
	require.Zero(t, in.Held())
}

func TestQueueIsFirstInFirstOutAndBounded(t *testing.T) {
	t.Parallel()
	q := queue{ring: make([]*Delivery, 3)}
	require.Nil(t, q.pop())
	for round := range uint64(5) {
		for i := range uint64(3) {
			require.True(t, q.push(&Delivery{Seq: 3*round + i}))
		}
		require.False(t, q.push(&Delivery{}))
		for i := range uint64(3) {
			require.Equal(t, 3*round+i, q.pop().Seq)
		}
		require.Nil(t, q.pop())
	}
}

// The lease expires as soon as receive has looked the delivery up.
func TestRedeliveryIsNeverForgottenWhileTheLeaseExpires(t *testing.T) {
	t.Parallel()
	for range 5000 {
		var now atomic.Int64
		in := newInbox(&offline{}, "", func() time.Duration { return time.Duration(now.Load()) },
			Options{Stream: "W", Consumer: "c", Slots: 1, AckWait: time.Second})
		in.probe()
		require.NotNil(t, in.receive(delivery(1)))
		now.Store(int64(2 * time.Second))
		in.probe() // the redelivery was sent after this
		now.Store(0)
		m := delivery(1)
		var received atomic.Bool
		var both sync.WaitGroup
		both.Go(func() {
			in.receive(m)
			received.Store(true)
		})
		for !received.Load() {
			if in.mu.TryLock() {
				in.mu.Unlock()
				continue
			}
			now.Store(int64(2 * time.Second))
			in.expireLeases()
			break
		}
		both.Wait()
		d := in.held[1]
		require.NotNil(t, d, "it is neither held nor returned to the server")
		require.Equal(t, m.Reply, *d.reply.Load())
		require.NoError(t, d.held.Err())
	}
}

// BenchmarkHandle measures the way of a message from its receipt to a handler that settles it: one message at a time from
// an idle inbox, and many.
func BenchmarkHandle(b *testing.B) {
	for _, burst := range []int{1, 256} {
		b.Run(fmt.Sprintf("burst=%d", burst), func(b *testing.B) {
			var done sync.WaitGroup
			in := started(&offline{}, 256, func(_ context.Context, d *Delivery) {
				d.Ack()
				done.Done()
			})
			messages := make([]*nats.Msg, burst)
			for i := range messages {
				messages[i] = delivery(i + 1)
			}
			b.ReportAllocs()
			for range b.N {
				done.Add(burst)
				for _, m := range messages {
					in.receive(m)
				}
				done.Wait()
			}
		})
	}
}
