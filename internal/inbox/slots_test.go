package inbox_test

import (
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/inbox"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestDeliveryWhoseSlotIsReleasedKeepsItsLease(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
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
	require.Equal(t, int32(1), most.Load(), "those that have not released it have one slot")
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

func TestDrainWaitsForDeliveriesWhoseSlotIsReleased(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t, oneturntest.Memory)
	stream := queue(t, s, 2)
	var released sync.WaitGroup
	released.Add(2)
	in := run(t, s.Connect(), inbox.Options{Slots: 1, SoftStop: 50 * time.Millisecond, Handle: func(ctx context.Context, d *inbox.Delivery) {
		d.Release()
		released.Done()
		<-ctx.Done()
		d.Ack() // settled while its slot is released
	}})
	released.Wait()
	require.NoError(t, in.stop())
	require.Zero(t, in.Held())
	empty(t, stream)
}

// goroutines returns how many goroutines have a pprof label of this value.
func goroutines(t *testing.T, value string) (n int) {
	t.Helper()
	var text strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	count := 0
	for line := range strings.Lines(text.String()) {
		if at := strings.Index(line, " @ "); at > 0 {
			count, _ = strconv.Atoi(line[:at])
		}
		if strings.HasPrefix(line, "# labels:") && strings.Contains(line, `"`+value+`"`) {
			n += count
		}
	}
	return n
}

func TestIdleInboxHasNoHandlerGoroutines(t *testing.T) {
	t.Parallel()
	const own = 7 // Run, its four loops, its subscription, and the one for replies of the connection
	for _, slots := range []int{1, 512} {
		s := oneturntest.NewServer(t, oneturntest.Memory)
		stream := queue(t, s, 0)
		label, nc := "inbox-"+strconv.Itoa(slots), s.Connect()
		var in running
		pprof.Do(t.Context(), pprof.Labels("test", label), func(context.Context) {
			in = run(t, nc, inbox.Options{Slots: slots, Handle: func(_ context.Context, d *inbox.Delivery) { d.Ack() }})
		})
		require.Eventually(t, func() bool { return in.Ready() == nil }, 10*time.Second, time.Millisecond)
		js, err := jetstream.New(s.Connect())
		require.NoError(t, err)
		require.Eventually(t, func() bool { return goroutines(t, label) == own }, 10*time.Second, 10*time.Millisecond, "%d slots", slots)
		put(t, js, 50)
		empty(t, stream)
		require.Eventually(t, func() bool { return goroutines(t, label) == own }, 10*time.Second, 10*time.Millisecond, "%d slots", slots)
		require.NoError(t, in.stop())
	}
}
