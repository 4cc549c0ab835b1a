package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Sweep holds what the last sweep of this worker found. Any worker may do the next one:
// the figures with the newest Time are current.
type Sweep struct {
	Resumes *prometheus.CounterVec // condition: resumes published
	Open    prometheus.Gauge       // turns without a response
	Oldest  prometheus.Gauge       // seconds since the claim of the oldest of them
	Failed  prometheus.Gauge       // turns that could not be read or resumed
	Time    prometheus.Gauge       // when it ended, Unix seconds
	Seconds prometheus.Histogram   // how long sweeps take
}

// NewSweep makes the metrics and registers them with r.
func NewSweep(r prometheus.Registerer) (*Sweep, error) {
	const ns = "oneturn"
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: name, Help: help})
	}
	m := &Sweep{
		Resumes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: ns, Name: "sweep_resumes_total", Help: "Resumes published for turns that no worker would have ended.",
		}, []string{"condition"}),
		Open:   gauge("sweep_open_turns", "Turns without a response, as the last sweep of this worker found them."),
		Oldest: gauge("sweep_oldest_open_turn_seconds", "Age of the oldest open turn at the last sweep of this worker."),
		Failed: gauge("sweep_failed_turns", "Turns that the last sweep of this worker could not read or resume."),
		Time:   gauge("sweep_timestamp_seconds", "When the last sweep of this worker ended."),
		Seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: ns, Name: "sweep_seconds", Help: "Duration of sweeps.", Buckets: buckets(),
		}),
	}
	for _, c := range []prometheus.Collector{m.Resumes, m.Open, m.Oldest, m.Failed, m.Time, m.Seconds} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// Observe sets the figures of a sweep that has ended: turns without a response, turns that could not be read or
// resumed, the age of the oldest open turn, and how long the sweep took.
func (m *Sweep) Observe(open, failed int, oldest, took time.Duration) {
	m.Open.Set(float64(open))
	m.Oldest.Set(oldest.Seconds())
	m.Failed.Set(float64(failed))
	m.Time.SetToCurrentTime()
	m.Seconds.Observe(took.Seconds())
}
