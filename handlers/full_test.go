package handlers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/tools"
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
func TestNewTurnIsGivenBackWhileTheStoreIsNearlyFullAndRunsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	entered := 0
	k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		entered++
		return tools.Result{}, nil
	}))
	var store fullStore
	store.full.Store(true)
	k.Full = store.look
	for _, delivery := range []uint64{1, 2, 60, 120} { // however often it was given back
		d := k.Handle(t.Context(), k.message(1, delivery))
		require.Equal(t, handlers.Nak, d.Do)
		require.GreaterOrEqual(t, d.Delay, time.Second)
		require.LessOrEqual(t, d.Delay, time.Minute)
	}
	_, err := k.store.At(t.Context(), 1)
	require.ErrorIs(t, err, idempotency.ErrNotFound, "nothing is claimed")
	store.full.Store(false)
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 121)).Do)
	require.True(t, k.response().Success, "deliveries of that time are no attempts")
	require.Equal(t, 1, entered)
}

// F18: see docs/faults.md. What is open ends, and makes room.
func TestOpenTurnEndsWhileTheStoreIsNearlyFull(t *testing.T) {
	t.Parallel()
	full := func() (bool, time.Time) { return true, time.Now() }
	for name, end := range map[string]func(k *kit, a *asker) *handlers.Message{
		"answer": func(k *kit, a *asker) *handlers.Message { return k.says(9, a.question("1"), "yes").Message },
		"expiry": func(k *kit, a *asker) *handlers.Message {
			return k.expiry(9, a, "1", func(e *events.Expire) { e.Forced = true }).Message
		},
		"cancel": func(k *kit, a *asker) *handlers.Message {
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
			require.Contains(t, []handlers.Do{handlers.Ack, handlers.Erase}, k.Handle(t.Context(), end(k, a)).Do)
			require.NotNil(t, k.response())
		})
	}
	t.Run("message of a dead worker", func(t *testing.T) {
		t.Parallel()
		k := newKit(t, toolFunc(nothing))
		k.Full = full
		k.asker("turn", "") // claims it with the first delivery, and dies
		require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 2)).Do)
		require.NotNil(t, k.response())
	})
	t.Run("resume", func(t *testing.T) {
		t.Parallel()
		k := newKit(t, toolFunc(nothing))
		k.Full, k.LeaseHeld = full, func(context.Context, idempotency.Lease) (bool, error) { return false, nil }
		a := k.asker("turn", "")
		body, err := events.EncodeResume(&events.Resume{TurnID: a.id, Workflow: "WF"}, time.Now())
		require.NoError(t, err)
		require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.mail(9, events.KindResume, body).Message).Do)
		require.NotNil(t, k.response())
	})
}
