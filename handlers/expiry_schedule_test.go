package handlers_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/timers"
	"github.com/oneturn/oneturn/subjects"
)

func TestRunParksOnlyWhenTheServerKnowsTheEndOfItsQuestion(t *testing.T) {
	t.Parallel()
	inBubble(t, bindings.EffectReplay, asks(""), func(t *testing.T, o *bubble) { //nolint:thelper // the test itself, in its bubble
		var heard atomic.Bool
		o.Schedule = func(context.Context, *events.Expire) error {
			if heard.Load() {
				return nil
			}
			return errors.New("no responders")
		}
		done := o.handle(o.turn())
		<-time.After(time.Hour)
		require.False(t, o.parked())
		heard.Store(true)
		<-time.After(2 * time.Minute) // looks grow rare
		require.Equal(t, inbound.Ack, settled(t, done).Do)
		require.True(t, o.parked())
	})
}

func TestExpiryIsScheduledOnceForAQuestionAndDeliveredWhenItIsDue(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	stream, err := k.js.Stream(t.Context(), k.space.TimersStream())
	require.NoError(t, err)
	schedule := timers.ScheduleExpiry(k.js, k.space)
	key := subjects.TurnKey("app", "chat", "", "turn")
	e := &events.Expire{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Key: key.String(), Ask: "1", ExpiresAt: time.Now().Add(time.Hour),
	}
	require.NoError(t, schedule(t.Context(), e))
	require.NoError(t, schedule(t.Context(), e))
	require.EqualValues(t, 1, messages(t, stream))
	e.ExpiresAt = time.Now().Add(-time.Hour) // a run asks again what is over
	require.NoError(t, schedule(t.Context(), e))
	require.Eventually(t, func() bool {
		m, err := stream.GetLastMsgForSubject(t.Context(), k.space.AskDue(key, "1"))
		return err == nil && len(m.Data) > 0
	}, 20*time.Second, 10*time.Millisecond)
	e.ExpiresAt = time.Time{}
	require.Error(t, schedule(t.Context(), e))
	e.Key = "no key"
	require.Error(t, schedule(t.Context(), e))
}

func messages(t *testing.T, s jetstream.Stream) uint64 {
	t.Helper()
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	return info.State.Msgs
}

// due is what the timers' consumer delivers of a question's end.
func (k *kit) due(t *testing.T, timers *timers.Timers, subject string, e *events.Expire) inbound.Do {
	t.Helper()
	body, err := events.EncodeExpire(e, time.Now())
	require.NoError(t, err)
	m := k.message(1, 1)
	m.Subject, m.Data = subject, body
	return timers.Handle(t.Context(), m).Do
}

func TestEndOfAQuestionGoesToThePoolOnceAndNowhereElse(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	timers := k.timers()
	key := subjects.TurnKey("app", "chat", "", "turn")
	e := events.Expire{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Key: key.String(), Ask: "1", Pool: "gpu", ExpiresAt: time.Now(),
	}
	subject := k.space.AskDue(key, "1")
	for range 2 { // the first one's acknowledgement got lost
		require.Equal(t, inbound.Ack, k.due(t, timers, subject, &e))
	}
	in, err := k.js.Stream(t.Context(), k.space.InStream())
	require.NoError(t, err)
	require.EqualValues(t, 1, messages(t, in))
	m, err := in.GetLastMsgForSubject(t.Context(), "oneturn.in.gpu.expire.app.WF.chat")
	require.NoError(t, err)
	got, err := events.DecodeExpire(m.Data)
	require.NoError(t, err)
	require.Equal(t, "1", got.Ask)
	forced, other, pool := e, e, e
	forced.Forced, other.Ask, pool.Pool = true, "2", "*"
	for _, wrong := range []*events.Expire{&forced, &other, &pool} {
		require.Equal(t, inbound.Ack, k.due(t, timers, subject, wrong))
	}
	require.EqualValues(t, 1, messages(t, in), "dead letters")
	dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	require.EqualValues(t, 1, messages(t, dead), "of one message")
}

func TestWorkerWithoutSweepsLeavesThemToOthers(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	timers := k.timers()
	timers.Interval = -1
	m := k.message(1, 1)
	m.Subject, m.Data = k.space.SweepDue(), nil
	d := timers.Handle(t.Context(), m)
	require.Equal(t, inbound.Nak, d.Do)
	m.Lease.Delivery = 30
	require.Greater(t, timers.Handle(t.Context(), m).Delay, d.Delay)
}

func (k *kit) timers() *timers.Timers {
	k.t.Helper()
	sweeps, err := metrics.NewSweep(k.registry)
	require.NoError(k.t, err)
	return &timers.Timers{
		Sweep: &sweep.Sweep{Space: k.space, JS: k.js, Store: k.store, AckWait: time.Second, Logger: k.Logger},
		Dead:  k.Dead, Metrics: k.Metrics, Sweeps: sweeps, Interval: time.Hour,
	}
}
