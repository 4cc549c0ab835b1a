package inbox_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestDeliveryThatIsAwayTakesNoSlotAndKeepsItsLease(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	stream := queue(t, s, 6)
	var begun, slots, most atomic.Int32
	goOn := make(chan struct{})
	var wait sync.WaitGroup
	wait.Add(5)
	in := run(t, s.Connect(), inbox.Options{Slots: 1, Handle: func(_ context.Context, d *inbox.Delivery) {
		defer d.Ack()
		busy := slots.Add(1)
		most.Store(max(most.Load(), busy))
		defer slots.Add(-1)
		if begun.Add(1) > 5 {
			return
		}
		slots.Add(-1)
		d.Release()
		d.Release()
		wait.Done()
		<-goOn
		d.Reacquire()
		d.Reacquire()
		slots.Add(1)
	}})
	wait.Wait()
	require.Eventually(t, func() bool { return begun.Load() == 6 && in.Held() == 5 }, 10*time.Second, time.Millisecond)
	require.Equal(t, int32(1), most.Load(), "those that are not away have one slot")
	beaten := time.Now().Add(3 * ackWait)
	require.Eventually(t, func() bool { return time.Now().After(beaten) }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, int32(6), begun.Load(), "none was delivered again")
	close(goOn)
	empty(t, stream)

	most.Store(0)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	put(t, js, 20)
	empty(t, stream)
	require.Equal(t, int32(26), begun.Load())
	require.Equal(t, int32(1), most.Load(), "the handlers that were one too many are gone")
	require.NoError(t, in.stop())
}

func TestDrainWaitsForDeliveriesThatAreAway(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	stream := queue(t, s, 2)
	var away sync.WaitGroup
	away.Add(2)
	in := run(t, s.Connect(), inbox.Options{Slots: 1, SoftStop: 50 * time.Millisecond, Handle: func(ctx context.Context, d *inbox.Delivery) {
		d.Release()
		away.Done()
		<-ctx.Done()
		d.Ack() // settled while it is away
	}})
	away.Wait()
	require.NoError(t, in.stop())
	require.Zero(t, in.Held())
	empty(t, stream)
}
