package handlers_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deferral"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// runs is a worker of the kit inside its tool, under the third delivery of its message.
type runs struct {
	*kit

	inStream bool // the message
	end      func() inbound.Disposition
}

func newRuns(t *testing.T) *runs {
	t.Helper()
	entered, ends := make(chan struct{}), make(chan struct{})
	r := &runs{inStream: true, kit: newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
		close(entered)
		<-ends
		return tools.Result{Value: json.RawMessage(`"done"`)}, nil
	}))}
	r.bind(bindings.EffectUnsafe, time.Minute)
	r.LeaseHeld = func(context.Context, idempotency.Lease) (bool, error) { return r.inStream, nil }
	owner := make(chan inbound.Disposition, 1)
	go func() { owner <- r.Handle(t.Context(), r.message(1, 3)) }()
	<-entered
	r.end = func() inbound.Disposition {
		close(ends)
		return <-owner
	}
	return r
}

// full is a worker that has a place for nothing more of the tenant and that does not know the workflow,
// or whose store is nearly full.
func (r *runs) full(change func(*handlers.Config)) (*handlers.Handlers, *deferred) {
	r.t.Helper()
	h, deferred := r.bounded(change, func(c *handlers.Config) { c.MaxAckPending = 64 })
	require.Equal(r.t, inbound.Nak, h.Handle(r.t.Context(), r.message(9, 1)).Do)
	return h, deferred
}

func TestOlderDeliveryIsNotDeferredWhileALaterOneRuns(t *testing.T) {
	t.Parallel()
	r := newRuns(t)
	h, _ := r.full(r.without)
	require.Equal(t, inbound.Leave, h.Handle(t.Context(), r.message(1, 2)).Do)
	first := func(stored time.Time, fresh bool) *inbound.Message {
		m := r.message(1, 1)
		m.Stored, m.Fresh, m.AckWait = stored, func() bool { return fresh }, ackWait
		return m
	}
	require.Equal(t, inbound.Leave, h.Handle(t.Context(), first(time.Now(), false)).Do, "an ack wait may be over")
	require.Equal(t, inbound.Leave, h.Handle(t.Context(), first(time.Now().Add(-16*time.Second), true)).Do,
		"a new leader counts from when the stream took the message")
	unknown := r.message(1, 1)
	require.Equal(t, inbound.Leave, h.Handle(t.Context(), unknown).Do, "the ack wait is not known")
	require.Equal(t, inbound.Ack, r.end().Do)
	require.Empty(t, r.response().Code)
}

// Until its first heartbeat a new leader of the consumer delivers a message again that has waited longer than an ack wait.
func TestLeaseOfAToolThatMayNotRunAgainIsRefreshedBeforeItRunsWhenItsMessageHasWaited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect    bindings.Effect
		waited    time.Duration
		refreshed int32
	}{
		"unsafe, waited":     {bindings.EffectUnsafe, 11 * time.Second, 1},
		"unsafe, fresh":      {bindings.EffectUnsafe, time.Second, 0},
		"replay, waited":     {bindings.EffectReplay, 11 * time.Second, 1},
		"idempotent, waited": {bindings.EffectIdempotent, 11 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refreshed, before atomic.Int32
			k := newKit(t, toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
				before.Store(refreshed.Load())
				return tools.Result{}, nil
			}))
			k.bind(c.effect, time.Minute)
			m := k.message(1, 1)
			m.Stored, m.AckWait, m.Refresh = time.Now().Add(-c.waited), ackWait, func() { refreshed.Add(1) }
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
			require.Equal(t, c.refreshed, refreshed.Load())
			require.Equal(t, c.refreshed, before.Load(), "the tool runs already")
		})
	}
}

// The acknowledgement came between the read and the claim of the later delivery, or from a version that
// does not read.
func TestCopyOfAMessageThatWasAcknowledgedWhileItRanTakesNoTurnFromItsOwner(t *testing.T) {
	t.Parallel()
	for name, copies := range map[string]int{"copy": 1, "copy of a copy": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			h, deferred := k.bounded(k.without, func(c *handlers.Config) { c.MaxAckPending = 64; c.BindingGrace = time.Hour })
			require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.message(9, 1)).Do)
			require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.message(1, 1)).Do)
			for i := range copies - 1 {
				require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.again(deferred.all[i], uint64(20+i))).Do)
			}
			r := newRuns(t)
			r.inStream = false
			other := handlers.New(r.Config)
			require.Equal(t, inbound.Ack, other.Handle(t.Context(), r.again(deferred.all[copies-1], 30)).Do)
			require.Equal(t, inbound.Ack, r.end().Do)
			require.Empty(t, r.response().Code, r.response().Content)
		})
	}
}

// Each message that takes a turn over is its lease.
func TestOlderDeliveryOfWhatHasTakenATurnOverIsNotAcknowledgedWhileALaterOneRuns(t *testing.T) {
	t.Parallel()
	for name := range map[string]bool{"its own message": true, "a resume": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			k.orphaned("idempotent")
			takeover := k.takeoverMessages()[name]
			require.NotNil(t, takeover)
			entered, ends, done := make(chan struct{}), make(chan struct{}), make(chan inbound.Disposition, 1)
			c := k.Config
			c.Tool = func(*bindings.Binding) (tools.Invoker, error) {
				return toolFunc(func(context.Context, *tools.Call) (tools.Result, error) {
					close(entered)
					<-ends
					return tools.Result{}, nil
				}), nil
			}
			owner := handlers.New(c)
			go func() { done <- owner.Handle(t.Context(), takeover(3)) }()
			<-entered
			h, _ := k.bounded(k.without, func(c *handlers.Config) { c.MaxAckPending = 64 })
			require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.message(99, 1)).Do)
			require.Equal(t, inbound.Leave, h.Handle(t.Context(), takeover(2)).Do)
			close(ends)
			require.Equal(t, inbound.Ack, (<-done).Do)
			require.True(t, k.response().Success)
		})
	}
}

// Whether it is deferred again or refused: also by a worker that cannot open it, and so does not know its question.
func TestOlderDeliveryOfAnAnswerIsNotAcknowledgedWhileALaterOneRunsItsTurn(t *testing.T) {
	t.Parallel()
	ring, err := secrets.Parse([]byte(secrets.NewKey()))
	require.NoError(t, err)
	for name, one := range map[string]struct{ sealed, refused, step bool }{
		"open, deferred": {}, "open, refused": {refused: true}, "sealed, deferred": {sealed: true}, "sealed, refused": {sealed: true, refused: true},
		"of a step, deferred": {step: true}, "of a step, refused": {step: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			owner := k.asker("asks", "")
			if one.step {
				owner.step = "0"
			}
			owner.ask("1", func(e *events.ToolCall) { e.Secret = one.sealed })
			owner.park("1")
			first, before := k.bounded(k.without, func(c *handlers.Config) { c.SecretKeys, c.MaxAckPending = ring, 64 })
			for i := range uint64(2) {
				first.Handle(t.Context(), k.answers(2+i, owner.question("1"), "swordfish").Message)
			}
			require.Len(t, before.all, 1)
			require.Equal(t, one.sealed, secrets.Sealed(before.all[0].Data))
			_, err := k.store.Create(t.Context(), idempotency.Record{ // by another worker
				Key:  owner.key.Private("takeover", "2"),
				Meta: idempotency.Meta{Nonce: idempotency.NewNonce(), Epoch: 2, Lease: idempotency.Lease{Stream: "IN", Seq: 20, Delivery: 3}},
			})
			require.NoError(t, err)
			h, deferred := k.bounded(k.without, func(c *handlers.Config) { c.MaxAckPending, c.BindingGrace = 64, time.Hour })
			if one.refused {
				deferred.err = idempotency.ErrRefused
			}
			require.Equal(t, inbound.Nak, h.Handle(t.Context(), k.again(before.all[0], 19)).Do, "the only place is taken")
			older := func(d deferral.Message) *inbound.Message {
				m := k.again(d, 20)
				m.Lease.Delivery = 2
				return m
			}
			require.Equal(t, inbound.Leave, h.Handle(t.Context(), older(before.all[0])).Do)
			require.Equal(t, inbound.Leave, h.Handle(t.Context(), older(deferred.all[len(deferred.all)-1])).Do, "the next worker knows its turn, too")
			require.Contains(t, []inbound.Do{inbound.Ack, inbound.Erase}, h.Handle(t.Context(), k.again(before.all[0], 21)).Do, "another message")
			if !one.sealed && one.refused {
				later := k.again(before.all[0], 20)
				later.Lease.Delivery = 4
				require.Equal(t, inbound.Nak, h.Handle(t.Context(), later).Do, "it is the lease of the turn")
			}
		})
	}
}

// unlisted is a journal that counts how often a turn is listed and records are read.
type unlisted struct {
	*storetest.Memory

	lists, reads *atomic.Int64
}

// Last implements [idempotency.Store].
func (u unlisted) Last(ctx context.Context, key string) (idempotency.Record, error) {
	u.reads.Add(1)
	return u.Memory.Last(ctx, key)
}

func (u unlisted) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, u.Last, keys)
}

// Scan implements [idempotency.Store].
func (u unlisted) Scan(ctx context.Context, key subjects.Key, known []idempotency.Record) ([]idempotency.Record, error) {
	u.lists.Add(1)
	return u.Memory.Scan(ctx, key, known)
}

// A flood is deferred at the cost of some reads: to list the records of a turn costs the server many times as much.
func TestNoTurnIsListedToRequeueItsMessage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*kit, *handlers.Config){
		"unknown workflow": func(k *kit, c *handlers.Config) { k.without(c) },
		"full store":       func(_ *kit, c *handlers.Config) { c.Full = func() (bool, time.Time) { return true, time.Time{} } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			owner := k.asker("asks", "")
			owner.ask("1")
			store := unlisted{k.store, &atomic.Int64{}, &atomic.Int64{}}
			h, deferred := k.bounded(func(c *handlers.Config) {
				change(k, c)
				c.MaxAckPending, c.Journal, c.BindingGrace = 64, idempotency.New(store, "w", idempotency.Options{}), time.Hour
			})
			for delivery := range uint64(4) {
				for seq := range uint64(3) {
					h.Handle(t.Context(), k.message(2+seq, 1+delivery))
				}
				if name == "unknown workflow" {
					h.Handle(t.Context(), k.answers(9, owner.question("1"), yes()).Message)
				}
			}
			require.Greater(t, len(deferred.all), 10)
			require.Zero(t, store.lists.Load())
		})
	}
}

func ackWait() time.Duration { return 30 * time.Second }

// The server delivers a message a second time when an ack wait is over, or when it was requeued.
func TestNothingIsReadToDeferAFreshFirstDelivery(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	store := unlisted{k.store, &atomic.Int64{}, &atomic.Int64{}}
	h, deferred := k.bounded(k.without, func(c *handlers.Config) {
		c.MaxAckPending, c.Journal = 64, idempotency.New(store, "w", idempotency.Options{})
	})
	for seq := range uint64(4) {
		m := k.message(1+seq, 1)
		m.AckWait = ackWait
		h.Handle(t.Context(), m)
	}
	require.Len(t, deferred.all, 3)
	require.Zero(t, store.reads.Load())
}
