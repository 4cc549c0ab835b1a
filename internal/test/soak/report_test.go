package soak_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/soak"
)

func Example() {
	start := time.Unix(0, 0)
	var samples []soak.Sample
	for i := range 13 { // an hour in steps of five minutes: 100 MiB and 24 MiB more
		samples = append(samples, soak.Sample{At: start.Add(time.Duration(i) * 5 * time.Minute), RSS: 100<<20 + int64(i)*2<<20})
	}
	memory := soak.Fit(samples, func(s soak.Sample) float64 { return float64(s.RSS) / (1 << 20) })
	fmt.Printf("%.0f → %.0f MiB, %+.0f MiB an hour\n", memory.First, memory.Last, memory.PerHour)
	// Output: 100 → 124 MiB, +24 MiB an hour
}

func TestFitFindsNoSlopeInNoise(t *testing.T) {
	t.Parallel()
	var samples []soak.Sample
	for i := range 600 {
		samples = append(samples, soak.Sample{At: time.Unix(int64(i)*5, 0), Goroutines: 100 + i%2*20})
	}
	trend := soak.Fit(samples, func(s soak.Sample) float64 { return float64(s.Goroutines) })
	require.InDelta(t, 0, trend.PerHour, 1)
	require.InDelta(t, 110, trend.First, 1)
	require.InDelta(t, 120, trend.Max, 0)
	require.Zero(t, soak.Fit(samples[:1], func(soak.Sample) float64 { return 1 }))
	require.Zero(t, soak.Fit([]soak.Sample{samples[0], samples[0]}, func(soak.Sample) float64 { return 1 }).PerHour)
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var values []time.Duration
	for i := range 100 {
		values = append(values, time.Duration(100-i))
	}
	require.Equal(t, time.Duration(99), soak.Percentile(values, 0.99))
	require.Equal(t, time.Duration(50), soak.Percentile(values, 0.5))
	require.Equal(t, time.Duration(100), soak.Percentile(values, 1))
	require.Equal(t, time.Duration(1), soak.Percentile(values, 0))
	require.Zero(t, soak.Percentile(nil, 0.5))
	require.Equal(t, time.Duration(7), soak.Percentile([]time.Duration{7}, 0.99))
}

func TestReportNamesViolationsAndFitsOnAPage(t *testing.T) {
	t.Parallel()
	r := soak.Report{Seed: 7, PublishGap: 3 * time.Second, ResponseGap: 4 * time.Second, Recovery: 5 * time.Second, RSS: soak.Trend{First: 1 << 20, Last: 2 << 20, Max: 3 << 20, PerHour: 1 << 20}}
	for i := range 100 {
		r.Violations = append(r.Violations, fmt.Sprint("I1 turn ", i))
	}
	var b strings.Builder
	_, err := r.WriteTo(&b)
	require.NoError(t, err)
	require.Contains(t, b.String(), "100 violations")
	require.Contains(t, b.String(), "VIOLATION I1 turn 0\n")
	require.Contains(t, b.String(), "80 more")
	require.Contains(t, b.String(), "seed 7")
	require.Contains(t, b.String(), "without a publish 3s, without a response 4s, from a fault to recovery 5s")
	require.Less(t, strings.Count(b.String(), "\n"), 60)
}

func TestReportOfABriefRunNamesWhatItDoesNotShow(t *testing.T) {
	t.Parallel()
	page := func(r soak.Report) string {
		var b strings.Builder
		_, err := r.WriteTo(&b)
		require.NoError(t, err)
		return b.String()
	}
	trend := soak.Trend{First: 10, Last: 11, Max: 12, PerHour: 600}
	brief := soak.Report{Every: time.Minute, Samples: 9, Goroutines: trend, P50First: time.Millisecond}
	text := page(brief)
	require.Contains(t, text, "NO FAULT WAS CAUSED")
	require.Contains(t, text, "the first comes after 1m0s")
	require.Regexp(t, `p50 +1ms +-\n`, text)
	require.Contains(t, text, "from a fault to recovery -\n")
	require.Regexp(t, `goroutines +10\.0 +11\.0 +12\.0 +-\n`, text, "no extrapolation from 40 seconds")
	require.Regexp(t, `goroutines +- +- +- +-\n`, page(soak.Report{Goroutines: trend}))
	long := page(soak.Report{Samples: 61, Goroutines: trend, Faults: []string{"kill worker 1"}})
	require.Regexp(t, `goroutines .* \+600\.0\n`, long)
	require.NotContains(t, long, "NO FAULT")
}

func TestSamplesAreReadBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "samples")
	want := soak.Sample{At: time.Unix(5, 0).UTC(), RSS: 1, Goroutines: 2, Descriptors: 3}
	line, err := json.Marshal(want)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(line, '\n'), 0o600))
	got, err := soak.ReadSamples(file)
	require.NoError(t, err)
	require.Equal(t, []soak.Sample{want}, got)
	require.NoError(t, os.WriteFile(file, []byte("x\n"), 0o600))
	_, err = soak.ReadSamples(file)
	require.ErrorContains(t, err, "line 1")
}
