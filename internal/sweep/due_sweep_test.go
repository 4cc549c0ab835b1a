package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/timers"
)

// timers returns the timers of a worker on the server of the test.
func (b *testSweep) timers(interval time.Duration) *timers.Timers {
	b.t.Helper()
	registry := prometheus.NewRegistry()
	counters, err := metrics.New(registry)
	require.NoError(b.t, err)
	sweeps, err := metrics.NewSweep(registry)
	require.NoError(b.t, err)
	blobs, err := store.NewBlobs(b.t.Context(), b.nc, b.JS, b.Space)
	require.NoError(b.t, err)
	return &timers.Timers{
		Sweep: b.Sweep, Pages: b.pages(), Dead: deadletter.New(b.JS, b.Space, blobs, counters), Metrics: counters, Sweeps: sweeps, Interval: interval,
	}
}

func (b *testSweep) due() *inbound.Message {
	b.t.Helper()
	const body = `{"from":0}`
	ack, err := b.JS.Publish(b.t.Context(), b.Space.SweepDue(), []byte(body))
	require.NoError(b.t, err)
	return &inbound.Message{
		Subject: b.Space.SweepDue(), Data: []byte(body), Stored: later(), Held: b.t.Context(), Fresh: func() bool { return true },
		Lease: idempotency.Lease{Stream: b.Space.TimersStream(), Seq: ack.Sequence, Delivery: 1},
	}
}

func TestOfTwoSweepsThatAreDueTheOlderRuns(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(1)
	timers := b.timers(time.Hour)
	first, second := b.due(), b.due()
	require.Equal(t, inbound.Ack, timers.Handle(t.Context(), second).Do)
	in, err := b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	require.Zero(t, in.CachedInfo().State.Msgs, "the younger does nothing")
	require.Equal(t, inbound.Ack, timers.Handle(t.Context(), first).Do)
	in, err = b.JS.Stream(t.Context(), b.Space.InStream())
	require.NoError(t, err)
	require.Equal(t, uint64(1), in.CachedInfo().State.Msgs)
}

func TestSweepThatStopsIsRequeuedAndOneThatLostItsLeaseIsLeft(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	b.orphans(1)
	timers := b.timers(time.Hour)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	m := b.due()
	require.Equal(t, inbound.Nak, timers.Handle(stopped, m).Do)
	m.Held = stopped
	require.Equal(t, inbound.Leave, timers.Handle(t.Context(), m).Do)
	m.Held = t.Context()
	require.Equal(t, inbound.Ack, timers.Handle(t.Context(), m).Do)
}

func TestScheduleIsMadeOnceAndReplacedByTheSweepThatEnds(t *testing.T) {
	t.Parallel()
	b := newTestSweep(t)
	timers := b.timers(time.Hour)
	stream, err := b.JS.Stream(t.Context(), b.Space.TimersStream())
	require.NoError(t, err)
	scheduled := func() string {
		m, err := stream.GetLastMsgForSubject(t.Context(), b.Space.SweepTimer())
		require.NoError(t, err)
		info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter(b.Space.SweepTimer()))
		require.NoError(t, err)
		require.Equal(t, map[string]uint64{b.Space.SweepTimer(): 1}, info.State.Subjects)
		return string(m.Data)
	}
	for range 3 {
		require.NoError(t, timers.Ensure(t.Context()))
		require.JSONEq(t, `{"from":0}`, scheduled())
	}
	b.orphans(1)
	require.Equal(t, inbound.Ack, timers.Handle(t.Context(), b.due()).Do)
	require.JSONEq(t, `{"from":0}`, scheduled())
	state, err := b.pages().State(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(2), state.From)
	require.Equal(t, 1, state.Open)
}
