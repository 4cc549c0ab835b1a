//go:build soak

package chaos_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/internal/test/soak"
	"github.com/oneturn/oneturn/oneturntest"
)

var (
	soakFor     = flag.Duration("soak.for", 10*time.Minute, "how long to run")
	soakRate    = flag.Int("soak.rate", 200, "turns a second")
	soakServers = flag.Int("soak.servers", 3, "servers, 1 or 3")
	soakEvery   = flag.Duration("soak.every", time.Minute, "time between two faults")
	soakJudge   = flag.Duration("soak.judge", 5*time.Minute, "time after which what was done is judged and forgotten")
	soakSeed    = flag.Uint64("soak.seed", 0, "seed of the faults; 0: a random one")
	soakReport  = flag.String("soak.report", "", "write the report to this path with .txt and .json")
)

// TestSoak runs a steady load for long, with a fault each minute, and reports on one page what
// that did to memory, descriptors and speed. It fails on a broken promise.
func TestSoak(t *testing.T) {
	t.Parallel()
	if *soakSeed == 0 {
		*soakSeed = uint64(rand.Uint32())
	}
	samples := t.TempDir() + "/samples"
	r := newRig(t, *soakSeed, setup{servers: *soakServers, workers: 3, rate: *soakRate, proxies: true, samples: samples, asks: 8})
	s := &soaking{rig: r, report: soak.Report{
		Seed: *soakSeed, Servers: *soakServers, Tier: "embedded", Workers: 3, Rate: *soakRate, Every: *soakEvery,
		Warmup: min(2*time.Minute, *soakFor/4), Faults: []string{},
	}}
	if *soakServers > 1 {
		s.report.Tier = "cluster"
	}
	start := time.Now()
	for time.Since(start) < *soakFor {
		s.piece(min(*soakJudge, *soakFor-time.Since(start)))
		s.judge()
	}
	s.finish(start, samples)
}

// soaking is a rig and what is known of it so far.
type soaking struct {
	*rig

	report  soak.Report
	begun   int // turns of the pieces before
	latency []latency
}

// piece lets the load run for a time, with faults.
func (s *soaking) piece(d time.Duration) {
	end := time.Now().Add(d)
	if s.load == nil {
		s.load = s.startLoad(s.begun)
	}
	kinds := s.faults()
	for {
		wait := min(*soakEvery, time.Until(end))
		if s.pause(wait); !time.Now().Before(end) {
			return
		}
		kind := kinds[len(s.report.Faults)%len(kinds)]
		before := len(s.strikes)
		kind()
		s.report.Faults = append(s.report.Faults, s.strikes[before:]...)
	}
}

// faults are the faults of a soak, each taken in its turn. Worker 0 is never ended: it is the one
// whose memory is watched.
func (s *soaking) faults() []func() {
	mortal := func() int { return 1 + s.rng.IntN(len(s.workers)-1) }
	return []func(){
		func() {
			i := mortal()
			at := s.strike("kill worker %d", i)
			s.replace(i, false)
			s.recovers(at)
		},
		func() {
			n := s.cluster.Nodes()[s.rng.IntN(len(s.cluster.Nodes()))]
			at := s.strike("kill server %s", n.Name())
			n.Kill()
			s.pause(s.jitter(5 * time.Second))
			n.Start()
			s.recovers(at)
		},
		func() {
			at := s.strike("cut and reset")
			for i, p := range s.proxies {
				if i%2 == 0 {
					p.Reset()
				} else {
					p.Cut()
				}
			}
			s.recovers(at)
		},
		func() {
			i := s.rng.IntN(len(s.proxies))
			at := s.strike("worker %d half-open for %s", i, 3*ackWait/2)
			s.proxies[i].Stall(harness.Down)
			s.pause(3 * ackWait / 2)
			s.proxies[i].Heal()
			s.recovers(at)
		},
		func() {
			i := mortal()
			at := s.strike("replace worker %d gently", i)
			s.replace(i, true)
			s.recovers(at)
		},
	}
}

// judge brings the run to rest, judges the piece and forgets it.
func (s *soaking) judge() {
	s.rest()
	accepted := s.load.Accepted()
	o := s.rig.judge(s.collect(), accepted)
	s.begun += len(accepted)
	s.report.Turns += o.turns
	s.report.Interrupted += o.interrupted
	s.report.Redelivered += o.redelivered
	s.report.Takeovers += o.takeovers
	s.report.Repeats += s.load.Repeats()
	s.report.PublishGap = max(s.report.PublishGap, s.load.Gap())
	s.report.ResponseGap = max(s.report.ResponseGap, o.responseGap)
	s.report.Recovery = s.recovered
	s.latency = append(s.latency, o.latencies...)
	for _, v := range o.violations {
		s.report.Violations = append(s.report.Violations, v.String())
	}
	s.load = nil
	audit, err := s.js.Stream(s.Context(), oneturntest.AuditStream)
	require.NoError(s.T, err)
	require.NoError(s.T, audit.Purge(s.Context()))
	require.NoError(s.T, os.Truncate(s.path("ledger"), 0)) // its writers append
}

// finish ends the workers and writes the report.
func (s *soaking) finish(start time.Time, samples string) {
	r := &s.report
	r.Minutes = time.Since(start).Minutes()
	for i, w := range s.workers {
		require.NoError(s.T, w.Stop(patience), "worker %d did not drain; log: %s", i, s.logTail())
	}
	fifth := time.Since(start) / 5
	var first, last []time.Duration
	for _, l := range s.latency {
		switch at := l.begun.Sub(start); {
		case at < fifth:
			first = append(first, l.took)
		case at >= 4*fifth:
			last = append(last, l.took)
		}
	}
	r.P50First, r.P99First = soak.Percentile(first, 0.5), soak.Percentile(first, 0.99)
	r.P50Last, r.P99Last = soak.Percentile(last, 0.5), soak.Percentile(last, 0.99)

	all, err := soak.ReadSamples(samples)
	require.NoError(s.T, err)
	warm := all[:0]
	for _, sample := range all {
		if sample.At.Sub(start) >= r.Warmup {
			warm = append(warm, sample)
		}
	}
	r.Samples = len(warm)
	r.RSS = soak.Fit(warm, func(s soak.Sample) float64 { return float64(s.RSS) })
	r.Goroutines = soak.Fit(warm, func(s soak.Sample) float64 { return float64(s.Goroutines) })
	r.Descriptors = soak.Fit(warm, func(s soak.Sample) float64 { return float64(s.Descriptors) })
	s.write()
}

func (s *soaking) write() {
	_, err := s.report.WriteTo(os.Stdout)
	require.NoError(s.T, err)
	if *soakReport == "" {
		return
	}
	text, err := os.Create(*soakReport + ".txt")
	require.NoError(s.T, err)
	defer text.Close()
	_, err = s.report.WriteTo(text)
	require.NoError(s.T, err)
	data, err := json.MarshalIndent(s.report, "", "  ")
	require.NoError(s.T, err)
	require.NoError(s.T, os.WriteFile(*soakReport+".json", append(data, '\n'), 0o600))
	fmt.Println("report:", *soakReport+".txt", *soakReport+".json") //nolint:forbidigo // the page goes to the terminal
}
