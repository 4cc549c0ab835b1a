package soak

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The report of a long run: trends of what the worker uses, latencies at the beginning and at the end, and what was
// broken, on one page.

// Trend is how a quantity went over time: the least-squares line through its samples.
type Trend struct {
	First   float64 `json:"first"` // of the line, at its two ends
	Last    float64 `json:"last"`
	PerHour float64 `json:"per_hour"` // slope
	Max     float64 `json:"max"`      // of the samples
}

// Fit returns the trend of a quantity in samples; the zero value for fewer than two.
func Fit(samples []Sample, of func(Sample) float64) Trend {
	if len(samples) < 2 {
		return Trend{}
	}
	start := samples[0].At
	var n, sx, sy, sxx, sxy, most float64
	for _, s := range samples {
		x, y := s.At.Sub(start).Hours(), of(s)
		n, sx, sy, sxx, sxy, most = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y, max(most, y)
	}
	spread := n*sxx - sx*sx
	if spread == 0 {
		return Trend{First: sy / n, Last: sy / n, Max: most}
	}
	slope := (n*sxy - sx*sy) / spread
	first := (sy - slope*sx) / n
	return Trend{First: first, Last: first + slope*samples[len(samples)-1].At.Sub(start).Hours(), PerHour: slope, Max: most}
}

// Percentile returns the smallest of the values that at least a part of p (0 to 1) of them do
// not exceed; 0 for none. It sorts the values.
func Percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	i := int(float64(len(values))*p+0.999999) - 1
	return values[min(max(i, 0), len(values)-1)]
}

// Report is a soak run on one page.
type Report struct {
	Seed       uint64        `json:"seed"`
	Servers    int           `json:"servers"`
	Tier       string        `json:"tier"` // of durability
	Workers    int           `json:"workers"`
	Rate       int           `json:"rate"` // turns a second
	Minutes    float64       `json:"minutes"`
	Every      time.Duration `json:"every_ns"` // between two faults: a run that is not longer causes none
	Turns      int           `json:"turns"`
	Faults     []string      `json:"faults"`
	Violations []string      `json:"violations"`

	Interrupted int `json:"interrupted"` // turns that a killed worker left undecided
	Redelivered int `json:"redelivered"`
	Takeovers   int `json:"takeovers"`
	Repeats     int `json:"repeats"` // of publishes

	PublishGap  time.Duration `json:"publish_gap_ns"`  // longest time without an acknowledged publish
	ResponseGap time.Duration `json:"response_gap_ns"` // longest time without a stored response
	Recovery    time.Duration `json:"recovery_ns"`     // longest time from a fault until turns continued

	P50First time.Duration `json:"p50_first_ns"` // publish to stored response: first and last fifth of the run
	P99First time.Duration `json:"p99_first_ns"`
	P50Last  time.Duration `json:"p50_last_ns"`
	P99Last  time.Duration `json:"p99_last_ns"`

	// Of the one worker that no fault ends, after Warmup.
	Warmup      time.Duration `json:"warmup_ns"`
	Samples     int           `json:"samples"`
	RSS         Trend         `json:"rss"` // bytes
	Goroutines  Trend         `json:"goroutines"`
	Descriptors Trend         `json:"descriptors"`
}

// LeastTrend is the time that samples have to span for the page to show a slope per hour: in less
// it is the warm-up and the noise that one sees.
const LeastTrend = 5 * time.Minute

// WriteTo writes the report as a page of text. What nothing was measured of is shown as "-".
func (r *Report) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("SOAK of %.1f minutes: %d violations", r.Minutes, len(r.Violations))
	line("%d turns at %d/s, %d workers, %d server(s), durability tier %s, seed %d", r.Turns, r.Rate, r.Workers, r.Servers, r.Tier, r.Seed)
	if len(r.Faults) == 0 {
		line("NO FAULT WAS CAUSED, so nothing is shown to survive one: the first comes after %s; run for longer", r.Every)
	}
	line("")
	line("publish → stored response      first fifth     last fifth")
	line("  p50                       %14s %14s", micros(r.P50First), micros(r.P50Last))
	line("  p99                       %14s %14s", micros(r.P99First), micros(r.P99Last))
	line("")
	line("worker that was never ended, %d samples after %s", r.Samples, r.Warmup)
	line("                                 at first        at last            max       per hour")
	const mib = 1 << 20
	for _, t := range []struct {
		name string
		unit float64
		Trend
	}{{"memory (RSS, MiB)", mib, r.RSS}, {"goroutines", 1, r.Goroutines}, {"descriptors", 1, r.Descriptors}} {
		line("  %-24s %14s %14s %14s %14s", t.name, r.measured(2, "%.1f", t.First/t.unit), r.measured(2, "%.1f", t.Last/t.unit),
			r.measured(2, "%.1f", t.Max/t.unit), r.measured(1+int(LeastTrend/SampleEvery), "%+.1f", t.PerHour/t.unit))
	}
	line("")
	line("longest time without a publish %s, without a response %s, from a fault to recovery %s",
		micros(r.PublishGap), micros(r.ResponseGap), micros(r.Recovery))
	line("interrupted %d, redelivered %d, takeovers %d, publishes repeated %d", r.Interrupted, r.Redelivered, r.Takeovers, r.Repeats)
	line("faults: %s", cmp.Or(strings.Join(r.Faults, "; "), "-"))
	for i, v := range r.Violations {
		const most = 20
		if i == most {
			line("… and %d more violations", len(r.Violations)-most)
			break
		}
		line("VIOLATION %s", v)
	}
	n, err := io.WriteString(w, b.String())
	if err != nil {
		return int64(n), fmt.Errorf("soak report: %w", err)
	}
	return int64(n), nil
}

// measured prints a figure that needs so many samples.
func (r *Report) measured(samples int, format string, figure float64) string {
	if r.Samples < samples {
		return "-"
	}
	return fmt.Sprintf(format, figure)
}

// micros prints a duration; nothing that was measured took no time at all.
func micros(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(10 * time.Microsecond).String()
}
