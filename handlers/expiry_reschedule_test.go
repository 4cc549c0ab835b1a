package handlers_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/timers"
)

// The clock of the server that leads the timers is ahead of the clock of the server that leads the
// inbound stream. What is scheduled again is published again within the duplicate window.
func TestExpiryThatCameTooSoonIsPublishedAgain(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	k.Schedule = timers.ScheduleExpiry(k.js, k.space)
	end := time.Now().Add(time.Second).Truncate(time.Millisecond)
	a := k.asker("turn", "")
	a.ask("1", func(e *events.ToolCall) { e.Answer.ExpiresAt = end })
	a.park("1")
	due := k.timersDue()
	in, err := k.js.Stream(t.Context(), k.space.InStream())
	require.NoError(t, err)
	require.NoError(t, k.Schedule(t.Context(), &events.Expire{
		TurnID: a.id, Workflow: "WF", Key: a.key.String(), Ask: "1", ToolCallID: a.question("1"), ExpiresAt: end,
	}))
	require.Equal(t, inbound.Ack, due().Do)
	raw, err := in.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	behind := func(at time.Time) time.Time { return at.Add(-90 * time.Second) }
	k.ServerTime = func(context.Context) (time.Time, error) { return behind(time.Now()), nil }
	m := k.mail(1, events.KindExpire, raw.Data)
	m.Subject, m.Stored = raw.Subject, behind(raw.Time)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
	require.Equal(t, idempotency.Open, a.outcome("1"))
	require.NoError(t, in.DeleteMsg(t.Context(), 1)) // acknowledged

	require.Equal(t, inbound.Ack, due().Do)
	require.EqualValues(t, 1, messages(t, in))
}

// timersDue returns a function that handles the next message that is due, as the timers of a worker do.
func (k *kit) timersDue() func() inbound.Disposition {
	registry := prometheus.NewRegistry()
	counters, err := metrics.New(registry)
	require.NoError(k.t, err)
	sweeps, err := metrics.NewSweep(registry)
	require.NoError(k.t, err)
	timers := &timers.Timers{
		Sweep: &sweep.Sweep{Space: k.space, JS: k.js, Store: k.store, Logger: slog.New(slog.DiscardHandler)},
		Dead:  k.Dead, Metrics: counters, Sweeps: sweeps, Interval: time.Hour,
	}
	consumer, err := k.js.Consumer(k.t.Context(), k.space.TimersStream(), k.space.TimersConsumer())
	require.NoError(k.t, err)
	return func() inbound.Disposition {
		m, err := consumer.Next(jetstream.FetchMaxWait(20 * time.Second))
		require.NoError(k.t, err)
		meta, err := m.Metadata()
		require.NoError(k.t, err)
		d := timers.Handle(k.t.Context(), &inbound.Message{
			Subject: m.Subject(), Header: m.Headers(), Data: m.Data(), Stored: meta.Timestamp, Held: k.t.Context(), Fresh: func() bool { return true },
			Lease: idempotency.Lease{Stream: meta.Stream, Seq: meta.Sequence.Stream, Delivery: meta.NumDelivered},
		})
		require.NoError(k.t, m.Ack())
		return d
	}
}

// An inbound stream that was made again repeats its sequences.
func TestDeadLetterIsDroppedOnlyAsARepeatOfTheSameMessage(t *testing.T) {
	t.Parallel()
	k := newKit(t, toolFunc(nothing))
	dead, err := k.js.Stream(t.Context(), k.space.DeadStream())
	require.NoError(t, err)
	first := k.message(1, 1)
	again, another := *first, *first
	again.Lease.Delivery = 2
	another.Stored = first.Stored.Add(time.Second)
	for _, m := range []*inbound.Message{first, &again, &another} {
		require.NoError(t, k.Dead.Put(t.Context(), m, "undecodable", errors.New("broken")))
	}
	require.EqualValues(t, 2, messages(t, dead))
}
