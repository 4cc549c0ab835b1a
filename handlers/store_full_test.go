package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// fullStore is a store that is nearly full while full is set.
type fullStore struct{ full, was atomic.Bool }

func (f *fullStore) look() (now bool, last time.Time) {
	if f.full.Load() {
		f.was.Store(true)
	}
	if f.was.Load() {
		last = time.Now()
	}
	return f.full.Load(), last
}

// F18: see docs/faults.md.
func TestNewTurnIsRequeuedWhileTheStoreIsNearlyFullAndRunsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	entered := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered++
		return tools.Result{}, nil
	}))
	var store fullStore
	store.full.Store(true)
	k.Full = store.look
	for _, delivery := range []uint64{1, 2, 60, 120} { // however often it was requeued
		d := k.Handle(t.Context(), k.message(1, delivery))
		require.Equal(t, inbound.Nak, d.Do)
		require.GreaterOrEqual(t, d.Delay, time.Second)
		require.LessOrEqual(t, d.Delay, time.Minute)
	}
	_, err := k.store.At(t.Context(), 1)
	require.ErrorIs(t, err, idempotency.ErrNotFound, "nothing is claimed")
	store.full.Store(false)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 121)).Do)
	require.True(t, k.response().Success, "deliveries of that time are not attempts")
	require.Equal(t, 1, entered)
}

// F18: see docs/faults.md. What is open ends, and makes room.
func TestOpenTurnEndsWhileTheStoreIsNearlyFull(t *testing.T) {
	t.Parallel()
	full := func() (bool, time.Time) { return true, time.Now() }
	for name, end := range map[string]func(k *kit, a *asker) *inbound.Message{
		"answer": func(k *kit, a *asker) *inbound.Message { return k.answers(9, a.question("1"), "yes").Message },
		"expiry": func(k *kit, a *asker) *inbound.Message {
			return k.expiry(9, a, "1", func(e *events.Expire) { e.Forced = true }).Message
		},
		"cancel": func(k *kit, a *asker) *inbound.Message {
			body, err := events.EncodeCancel(&events.Cancel{TurnID: a.id, Workflow: "WF"}, time.Now())
			require.NoError(k.t, err)
			return k.mail(9, events.KindCancel, body).Message
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.Full = full
			a := k.asker("turn", "")
			a.ask("1")
			a.park("1")
			require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, k.Handle(t.Context(), end(k, a)).Do)
			require.NotNil(t, k.response())
		})
	}
	t.Run("message of a dead worker", func(t *testing.T) {
		t.Parallel()
		k := newKit(t, toolFunc(nothing))
		k.Full = full
		k.asker("turn", "") // claims it with the first delivery, and dies
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(1, 2)).Do)
		require.NotNil(t, k.response())
	})
	t.Run("resume", func(t *testing.T) {
		t.Parallel()
		k := newKit(t, toolFunc(nothing))
		k.Full, k.LeaseHeld = full, func(context.Context, idempotency.Lease) (bool, error) { return false, nil }
		a := k.asker("turn", "")
		body, err := events.EncodeResume(&events.Resume{TurnID: a.id, Workflow: "WF"}, time.Now())
		require.NoError(t, err)
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(9, events.KindResume, body).Message).Do)
		require.NotNil(t, k.response())
	})
}

// H25: see docs/faults.md. Its new turns and cancels of turns without a claim are
// requeued, deliveries of that time are not attempts, and open turns end.
func TestTenantWithItsShareOfTheStoreWaitsAndOthersRun(t *testing.T) {
	t.Parallel()
	entered := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered++
		return tools.Result{}, nil
	}))
	asker := k.asker("asks", "")
	asker.ask("1")
	asker.park("1")
	left, look := int64(100<<10), uint64(1)
	k.StoreLeft = func() (int64, int64, uint64) { return left, 0, look }
	of := func(app string, seq, delivery uint64, size int) *inbound.Message {
		m := k.message(seq, delivery)
		body, err := events.EncodeTurn(&events.StructuredOutputReady{
			TurnID: events.TurnID{App: app, Chat: "chat", Turn: fmt.Sprint("turn ", seq)}, Workflow: "WF", Agent: "A", Model: "M",
			Data: map[string]any{"text": strings.Repeat("x", size)}, AutoToolMode: true,
		}, time.Now())
		require.NoError(t, err)
		m.Stored = m.Stored.Add(-time.Minute)
		m.Data, m.Subject = body, k.space.In("default", events.KindStructuredOutputReady, app, "WF", "chat")
		return m
	}
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), of("other", 1, 1, 0)).Do)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), of("app", 2, 1, 48<<10)).Do)
	for _, delivery := range []uint64{1, 2, 60, 120} {
		d := k.Handle(t.Context(), of("app", 3, delivery, 40<<10))
		require.Equal(t, inbound.Nak, d.Do, "delivery %d", delivery)
		require.LessOrEqual(t, d.Delay, time.Minute)
	}
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), of("other", 4, 1, 1<<10)).Do)
	require.Equal(t, 3, entered)
	cancel := func(seq uint64, turn string) inbound.Do {
		body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: turn}, Workflow: "WF"}, time.Now())
		require.NoError(t, err)
		return k.Handle(t.Context(), k.mail(seq, events.KindCancel, body).Message).Do
	}
	require.Equal(t, inbound.Nak, cancel(5, "unclaimed"))
	require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, k.Handle(t.Context(), k.answers(6, asker.question("1"), yes()).Message).Do)
	require.Equal(t, idempotency.Answered, asker.outcome("1"))
	second := k.asker("second", "")
	second.ask("1")
	second.park("1")
	require.Equal(t, inbound.Ack, cancel(7, "second"))
	require.Equal(t, idempotency.Cancelled, second.outcome("1"))
	left, look = 1<<30, 2
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), of("app", 3, 121, 40<<10)).Do)
	require.True(t, k.responded("turn 3"), "it runs")
}

// TestDuplicatesTakeNoShareOfTheStore: nothing is stored for them.
func TestDuplicatesTakeNoShareOfTheStore(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.StoreLeft = func() (int64, int64, uint64) { return 20 << 10, 0, 1 }
	for seq := range uint64(100) {
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.message(seq+1, 1)).Do)
	}
}

// responded reports whether a turn has a response.
func (k *kit) responded(turn string) bool {
	k.t.Helper()
	_, err := k.store.Last(k.t.Context(), subjects.TurnKey("app", "chat", "", turn).Public("tool_response"))
	return err == nil
}

// TestMessageThatBecomesADeadLetterTooLateIsLeftToItsNextDelivery: the acknowledgement would take the lease from a turn
// that the next delivery has claimed, or is about to.
func TestMessageThatBecomesADeadLetterTooLateIsLeftToItsNextDelivery(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	h, _ := k.bounded(func(c *handlers.Config) {
		c.Full = func() (bool, time.Time) { return true, time.Time{} }
		c.DeferralQuota = func(context.Context, string, int) (bool, error) { return false, nil }
	})
	outcomes := map[inbound.Do]int{}
	for i := range uint64(4) {
		m, looks := k.message(1+i, 1), 0
		m.Fresh = func() bool { looks++; return looks == 1 || i == 3 } // only the last one is in time with its dead letter
		outcomes[h.Handle(t.Context(), m).Do]++
	}
	require.Equal(t, map[inbound.Do]int{inbound.Nak: 2, inbound.Leave: 1, inbound.Ack: 1}, outcomes)
}
