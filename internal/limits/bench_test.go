package limits_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// BenchmarkRate is what a call pays for a rate that it never exceeds, on a server: 64 at a time.
func BenchmarkRate(b *testing.B) {
	s := oneturntest.NewServer(b)
	s.Provision()
	js, err := jetstream.New(s.Connect())
	require.NoError(b, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(b, err)
	l := limits.New(limits.NewKV(js, space), nil)
	b.Cleanup(l.Close)
	limit := target.Limits{Tool: target.Limit{Rate: target.Rate{Calls: 1_000_000, Per: time.Second}}}
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := l.Wait(b.Context(), "tool", "acme", limit); err != nil {
				b.Error(err)
			}
		}
	})
	stream, err := js.Stream(b.Context(), "KV_"+space.LimitsBucket())
	require.NoError(b, err)
	b.ReportMetric(float64(stream.CachedInfo().State.LastSeq)/float64(b.N), "writes/op")
}

// BenchmarkConcurrency is the cost of a limit without a request.
func BenchmarkConcurrency(b *testing.B) {
	l := limits.New(nil, nil)
	b.Cleanup(l.Close)
	limit := target.Limits{Tool: target.Limit{Concurrency: 100}, Tenant: target.Limit{Concurrency: 10}}
	b.ReportAllocs()
	for b.Loop() {
		release, err := l.Wait(b.Context(), "tool", "acme", limit)
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
