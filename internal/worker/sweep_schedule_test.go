package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
)

func TestOneScheduleGoesRoundAmongWorkersAndSurvivesThem(t *testing.T) {
	t.Parallel()
	s := server(t)
	var f fixer
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	timers, err := js.Stream(t.Context(), "ONETURN_TIMERS")
	require.NoError(t, err)
	count := func(c oneturn.Config) (oneturn.Config, func() float64) {
		registry := prometheus.NewRegistry()
		c.Registry = registry
		return c, func() float64 { return sweeps(t, registry) }
	}
	c1, n1 := count(f.config(oneturn.Unsafe))
	c2, n2 := count(f.config(oneturn.Unsafe))
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 2)
	for _, c := range []oneturn.Config{c1, c2} {
		w, err := oneturn.NewWorker(s.Connect(), c)
		require.NoError(t, err)
		go func() { done <- w.Run(ctx) }()
	}
	most := uint64(0)
	require.Eventually(t, func() bool {
		info, err := timers.Info(t.Context())
		require.NoError(t, err)
		most = max(most, info.State.Msgs)
		return n1()+n2() >= 8
	}, 20*time.Second, time.Millisecond)
	require.LessOrEqual(t, most, uint64(2), "a schedule, and the sweep that is due")
	stop()
	require.NoError(t, <-done)
	require.NoError(t, <-done)

	info, err := timers.Info(t.Context())
	require.NoError(t, err)
	require.Positive(t, info.State.Msgs, "the schedule is there without a worker")
	c3, n3 := count(f.config(oneturn.Unsafe))
	c3.SweepEvery = time.Hour // it makes no schedule
	start(t, s, c3)
	require.Eventually(t, func() bool { return n3() == 1 }, 20*time.Second, 5*time.Millisecond)
}

// sweeps is how many sweeps a worker has done.
func sweeps(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "oneturn_sweep_seconds" {
			return float64(family.GetMetric()[0].GetHistogram().GetSampleCount())
		}
	}
	return 0
}

func TestSweepCarriesItsStateAndReadsTheJournalOnce(t *testing.T) {
	t.Parallel()
	s := server(t)
	o := newOrphan(t, s, "parked", "replay")
	o.store(t)
	o.record(t, o.key.Private("park", "1"), nil, map[string]string{
		idempotency.HeaderOwner: "w", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1", idempotency.HeaderOutcome: "parked",
	})
	ended := newOrphan(t, s, "ended", "unsafe")
	ended.store(t)
	ended.record(t, ended.key.Public(events.KindToolResponse), []byte(`{}`), ended.meta)
	var f fixer
	start(t, s, f.config(oneturn.Unsafe))
	pages, err := sweep.OpenPages(t.Context(), o.js, o.space)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := pages.State(t.Context())
		if err != nil || state.From != 5 || state.Open != 1 {
			return false
		}
		page, err := pages.Page(t.Context(), state.First)
		return err == nil && len(page.Turns) == 1 && page.Turns[0].Key == o.key.String() && page.Turns[0].Seq == 1 && page.Turns[0].Parked == 2
	}, 20*time.Second, 5*time.Millisecond)
}
