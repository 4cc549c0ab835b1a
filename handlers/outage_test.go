package handlers_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
)

// unreachable is a journal that does not answer while it is away.
type unreachable struct {
	*storetest.Memory

	away atomic.Bool
}

var errAway = errors.New("no responders")

func (s *unreachable) Create(ctx context.Context, r idempotency.Record) (uint64, error) {
	if s.away.Load() {
		return 0, errAway
	}
	return s.Memory.Create(ctx, r)
}

func (s *unreachable) Last(ctx context.Context, key string) (idempotency.Record, error) {
	if s.away.Load() {
		return idempotency.Record{}, errAway
	}
	return s.Memory.Last(ctx, key)
}

func (s *unreachable) LastOf(ctx context.Context, keys []string) ([]*idempotency.Record, error) {
	return storetest.LastOf(ctx, s.Last, keys)
}

// cutOff gives the bubble a journal that may be away, and a turn whose lease may be lost.
func (o *bubble) cutOff(journal *unreachable) (m *inbound.Message, lose context.CancelFunc) {
	journal.Memory = o.store
	o.Journal = idempotency.New(journal, "w", idempotency.Options{})
	m = o.turn()
	m.Held, lose = context.WithCancel(o.t.Context())
	return m, lose
}

// handleUntil is handle with a drain.
func (o *bubble) handleUntil(m *inbound.Message) (done <-chan inbound.Disposition, drain func()) {
	ctx, stop := context.WithCancelCause(o.t.Context())
	ended := make(chan inbound.Disposition, 1)
	go func() { ended <- o.Handle(ctx, m) }()
	return ended, func() { stop(handlers.ErrDraining) }
}

// interruptedElsewhere has another worker get the message again and end the turn.
func (o *bubble) interruptedElsewhere(m *inbound.Message) {
	o.t.Helper()
	again := *m
	again.Lease.Delivery, again.Held = 2, o.t.Context()
	c := o.Config
	c.Journal = idempotency.New(o.store, "other", idempotency.Options{})
	require.Equal(o.t, inbound.Ack, handlers.New(c).Handle(o.t.Context(), &again).Do)
	require.Equal(o.t, events.CodeInterrupted, o.response().Code)
}

// leavesServer is a tool after which the server is away.
func leavesServer(journal *unreachable) toolFunc {
	return func(context.Context, *tools.Call) (tools.Result, error) {
		journal.away.Store(true)
		return tools.Result{}, nil
	}
}

// F10: see docs/faults.md.
func TestResultOutlivesAnOutageThatIsLongerThanTheLease(t *testing.T) {
	t.Parallel()
	journal := &unreachable{}
	inBubble(t, bindings.EffectUnsafe, leavesServer(journal), func(t *testing.T, o *bubble) {
		t.Helper()
		m, lose := o.cutOff(journal)
		done := o.handle(m)
		pass(30 * time.Second)
		lose()
		pass(time.Hour)
		require.Empty(t, done)
		journal.away.Store(false)
		pass(time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.response().Success)
		require.Zero(t, o.count("late_results_total"))
	})
}

// F03: see docs/faults.md. The lease of a process that stood still ends a moment after the process continues, and it may have
// to stop immediately.
func TestResultIsTriedAndCountedAsLateWhenTheLeaseEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, drains := range map[string]bool{"runs on": false, "drains": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &unreachable{}
			inBubble(t, bindings.EffectUnsafe, leavesServer(journal), func(t *testing.T, o *bubble) {
				t.Helper()
				m, lose := o.cutOff(journal)
				done, drain := o.handleUntil(m)
				pass(time.Second)
				o.interruptedElsewhere(m)
				if drains {
					drain()
				}
				lose()
				journal.away.Store(false)
				pass(time.Second)
				require.Equal(t, inbound.Ack, settled(t, done).Do)
				require.Equal(t, 1, o.count("late_results_total"))
				require.Equal(t, events.CodeInterrupted, o.response().Code)
			})
		})
	}
}

func TestDrainEndsTheWaitForAServerThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	journal := &unreachable{}
	inBubble(t, bindings.EffectUnsafe, leavesServer(journal), func(t *testing.T, o *bubble) {
		t.Helper()
		m, lose := o.cutOff(journal)
		done, drain := o.handleUntil(m)
		pass(time.Second)
		lose()
		pass(time.Hour)
		drain()
		pass(2 * time.Second)
		require.Equal(t, inbound.Leave, settled(t, done).Do)
	})
}

func TestResultsThatWaitForTheServerAreBounded(t *testing.T) {
	t.Parallel()
	journal := &unreachable{}
	inBubble(t, bindings.EffectUnsafe, leavesServer(journal), func(t *testing.T, o *bubble) {
		t.Helper()
		const most = 4096
		held, lose := context.WithCancel(t.Context())
		m, _ := o.cutOff(journal)
		done := make(chan inbound.Disposition, most+1)
		for n := range most + 1 {
			m = o.turn(func(e *events.StructuredOutputReady) { e.Turn = strconv.Itoa(n) })
			m.Held = held //nolint:fatcontext // of each message, not of the last
			journal.away.Store(false)
			go func() { done <- o.Handle(t.Context(), m) }()
			pass(0)
		}
		journal.away.Store(true)
		lose()
		pass(time.Second)
		require.Equal(t, inbound.Leave, settled(t, done).Do)
		require.Empty(t, done)
		journal.away.Store(false)
		pass(time.Second)
		require.Len(t, done, most)
		require.Equal(t, inbound.Ack, (<-done).Do)
	})
}

func TestEndOfATurnIsTriedAgainWhenTheLeaseEndsMeanwhile(t *testing.T) {
	t.Parallel()
	journal := &unreachable{}
	tool := func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		<-ctx.Done()
		journal.away.Store(true)
		return tools.Result{}, ctx.Err()
	}
	inBubble(t, bindings.EffectUnsafe, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		m, lose := o.cutOff(journal)
		done, drain := o.handleUntil(m)
		pass(time.Second)
		drain()
		pass(100 * time.Millisecond)
		lose()
		pass(100 * time.Millisecond)
		require.Empty(t, done)
		journal.away.Store(false)
		pass(time.Second)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Equal(t, events.CodeInterrupted, o.response().Code)
	})
}

func TestUnsafeRunThatWaitsForAPersonOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	journal := &unreachable{}
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		m, lose := o.cutOff(journal)
		done := o.handle(m)
		pass(time.Second)
		journal.away.Store(true)
		pass(time.Minute)
		lose()
		pass(10 * time.Minute)
		require.Empty(t, done)
		journal.away.Store(false)
		o.answer("1", "yes")
		pass(2 * time.Minute)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.Equal(t, []any{"yes"}, o.response().Payload)
	})
}

func TestUnsafeRunAsksAgainAfterAnOutage(t *testing.T) {
	t.Parallel()
	journal := &unreachable{}
	tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		journal.away.Store(true)
		_, err := call.Host.Ask(ctx, tools.Question{Payload: []byte(`{"text":"` + strings.Repeat("x", 2*inline) + `"}`), Timeout: time.Hour})
		return tools.Result{}, err
	}
	inBubble(t, bindings.EffectUnsafe, tool, func(t *testing.T, o *bubble) {
		t.Helper()
		m, lose := o.cutOff(journal)
		done := o.handle(m)
		pass(time.Second)
		lose()
		pass(time.Minute)
		require.Empty(t, done)
		journal.away.Store(false)
		pass(time.Second)
		o.answer("1", "yes")
		pass(time.Minute)
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.response().Success)
	})
}

func TestDrainEndsAnUnsafeRunThatWaitsWithoutItsLease(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"server away": true, "server back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &unreachable{}
			inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) {
				t.Helper()
				m, lose := o.cutOff(journal)
				done, drain := o.handleUntil(m)
				pass(time.Second)
				journal.away.Store(true)
				lose()
				pass(10 * time.Minute)
				journal.away.Store(away)
				pass(time.Second)
				drain()
				pass(2 * time.Second)
				if away {
					require.Equal(t, inbound.Leave, settled(t, done).Do)
					return
				}
				require.Equal(t, inbound.Ack, settled(t, done).Do)
				require.Equal(t, events.CodeInterrupted, o.response().Code)
			})
		})
	}
}

func TestToolThatWaitsNoLongerIsNotKeptByAnOutage(t *testing.T) {
	t.Parallel()
	for _, effect := range []bindings.Effect{bindings.EffectUnsafe, bindings.EffectIdempotent} {
		t.Run(string(effect), func(t *testing.T) {
			t.Parallel()
			journal := &unreachable{}
			var gaveUp error
			tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				_, gaveUp = call.Host.Ask(ctx, tools.Question{})
				return tools.Result{}, nil
			}
			inBubble(t, effect, tool, func(t *testing.T, o *bubble) {
				t.Helper()
				m, _ := o.cutOff(journal)
				o.ParkAfter = time.Hour
				done := o.handle(m)
				pass(time.Second)
				journal.away.Store(true)
				pass(time.Minute)
				require.ErrorIs(t, gaveUp, context.DeadlineExceeded)
				journal.away.Store(false)
				pass(time.Second)
				require.Equal(t, inbound.Ack, settled(t, done).Do)
				require.True(t, o.response().Success)
			})
		})
	}
}

func TestUnsafeRunThatWaitsEndsWhenItsTurnHasEndedMeanwhile(t *testing.T) {
	t.Parallel()
	journal := &unreachable{}
	inBubble(t, bindings.EffectUnsafe, asks(""), func(t *testing.T, o *bubble) {
		t.Helper()
		m, lose := o.cutOff(journal)
		lost := o.handle(m)
		lose()
		o.interruptedElsewhere(m)
		require.Contains(t, o.response().Content, "stopped, or lost the turn")
		pass(time.Minute)
		require.Equal(t, inbound.Leave, settled(t, lost).Do)
	})
}
