package handlers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// leaderless is a journal that answers no request while it is down.
type leaderless struct {
	*idempotency.Memory

	down atomic.Bool
}

var errLeaderless = errors.New("no leader")

// Last implements [idempotency.Store].
func (l *leaderless) Last(ctx context.Context, key string) (idempotency.Record, error) {
	if l.down.Load() {
		return idempotency.Record{}, errLeaderless
	}
	return l.Memory.Last(ctx, key)
}

// Scan implements [idempotency.Store].
func (l *leaderless) Scan(ctx context.Context, key subjects.Key) ([]idempotency.Record, error) {
	if l.down.Load() {
		return nil, errLeaderless
	}
	return l.Memory.Scan(ctx, key)
}

// Create implements [idempotency.Store]. It is lost with the lease of the message.
func (l *leaderless) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if l.down.Load() {
		return 0, errLeaderless
	}
	return l.Memory.Create(ctx, r)
}

func TestWhatEndsAnOpenTurnOutlivesAnOutageOfTheJournal(t *testing.T) {
	t.Parallel()
	const hours = 200 // deliveries, each of an ack wait
	for name, message := range map[string]func(k *kit, a *asker) *handlers.Message{
		"answer": func(k *kit, a *asker) *handlers.Message { return k.says(9, a.question("1"), "yes").Message },
		"expiry": func(k *kit, a *asker) *handlers.Message {
			return k.expiry(9, a, "1", func(e *events.Expire) { e.Forced = true }).Message
		},
		"cancel": func(k *kit, a *asker) *handlers.Message {
			body, err := events.EncodeCancel(&events.Cancel{TurnID: a.id, Workflow: "WF"}, k.Now())
			require.NoError(k.t, err)
			return k.mail(9, events.KindCancel, body).Message
		},
		"resume": func(k *kit, a *asker) *handlers.Message {
			body, err := events.EncodeResume(&events.Resume{TurnID: a.id, Workflow: "WF"}, k.Now())
			require.NoError(k.t, err)
			return k.mail(9, events.KindResume, body).Message
		},
		"message of a claimed turn": func(k *kit, _ *asker) *handlers.Message { return k.message(1, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, toolFunc(nothing))
			store := &leaderless{Memory: k.store}
			config := k.Config
			config.Journal = idempotency.New(store, "w", idempotency.Options{})
			config.LeaseHeld = func(context.Context, idempotency.Lease) (bool, error) { return false, nil }
			h := handlers.New(config)
			a := k.asker("turn", "")
			a.ask("1")
			a.park("1")
			m := message(k, a)
			store.down.Store(true)
			for n := range uint64(hours) {
				held, lapse := context.WithCancel(t.Context())
				again := *m
				again.Held, again.Lease.Delivery = held, n+2
				lapse() // what it tries ends with its lease
				require.Equal(t, handlers.Leave, h.Handle(t.Context(), &again).Do, "delivery %d", n+2)
			}
			store.down.Store(false)
			m.Lease.Delivery = hours + 2
			require.NotEqual(t, handlers.Leave, h.Handle(t.Context(), m).Do)
			dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
			require.NoError(t, err)
			require.Zero(t, dead.CachedInfo().State.Msgs, "nothing is given up")
		})
	}
}

func TestMessageThatNoWorkerCouldEvenRejectEndsAsDeadLetter(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	require.Equal(t, handlers.Ack, k.Handle(t.Context(), k.message(1, 101)).Do)
	dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	m, err := dead.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "undeliverable", m.Header.Get(handlers.HeaderReason))
	require.NotEmpty(t, m.Data)
}
