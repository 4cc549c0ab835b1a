package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oneturn/oneturn/provision"
)

// One measurement of one arm at one point: throughput works off a backlog, latency publishes at a fixed rate, idle
// watches a worker without turns. All return figures by name, which report.go turns into rows.

// Kinds of measurements.
const (
	throughput = "throughput"
	latency    = "latency"
	idle       = "idle"
)

// point is one thing to measure, for every arm.
type point struct {
	Kind     string `json:"kind"`
	Topology string `json:"topology"`
	Payload  string `json:"payload"`
	InFlight int    `json:"in_flight"`
	Rate     int    `json:"rate,omitempty"` // turns a second, of latency
}

// figures are what one measurement of one arm gave, by name (see metrics).
type figures map[string]float64

// measure makes one measurement of one arm in a separate lab.
func measure(ctx context.Context, o options, p point, arm string) (f figures, tier provision.Tier, err error) {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	l, err := open(ctx, o, p, arm)
	if err != nil {
		return nil, tier, fmt.Errorf("%s of %s: %w", p.Kind, arm, err)
	}
	defer func() {
		if errClose := l.close(); err == nil {
			err = errClose
		}
	}()
	if tier, err = provision.ReadTier(ctx, l.js, l.plan, provision.SyncLazy); err != nil {
		return nil, tier, err
	}
	switch p.Kind {
	case throughput:
		f, err = l.throughput(ctx, o.warm, o.turnsOf(p))
	case latency:
		f, err = l.latency(ctx, o.warm, p.Rate, int(float64(p.Rate)*o.paced.Seconds()))
	case idle:
		f, err = l.idle(ctx, o.warm, o.idle)
	}
	if err != nil {
		return nil, tier, fmt.Errorf("%s of %s (%s, %s, %d in flight): %w", p.Kind, arm, p.Topology, p.Payload, p.InFlight, err)
	}
	return f, tier, nil
}

// measureTimeout bounds one measurement: beyond it something hangs.
const measureTimeout = 2 * time.Minute

// throughput lets the worker work off a backlog. The rate is the rate of the records after the records of the first turns, in which connections, pools and pacing find their working state.
func (l *lab) throughput(ctx context.Context, warm, turns int) (figures, error) {
	all := warm + turns
	if _, err := l.publisher.do(ctx, request{Do: "fill", Count: all}); err != nil {
		return nil, err
	}
	stop, err := l.window(ctx, all)
	if err != nil {
		return nil, err
	}
	if _, err := l.worker.do(ctx, request{Do: "run"}); err != nil {
		return nil, err
	}
	if err := l.await(ctx, all); err != nil {
		return nil, err
	}
	f, err := stop()
	if err != nil {
		return nil, err
	}
	if _, err := l.responses(ctx, 0, all, 1); err != nil {
		return nil, err
	}
	took, err := l.spread(ctx, uint64(2*warm))
	if err != nil {
		return nil, err
	}
	f["turns_per_s"] = float64(turns) / took.Seconds()
	return f, nil
}

// latency publishes at a fixed rate and reads from the journal, when all is over, when each
// response was stored.
func (l *lab) latency(ctx context.Context, warm, rate, turns int) (figures, error) {
	if err := l.warm(ctx, warm); err != nil {
		return nil, err
	}
	stop, err := l.window(ctx, turns)
	if err != nil {
		return nil, err
	}
	answer, err := l.publisher.do(ctx, request{Do: "pace", From: warm, Count: turns, Rate: rate})
	if err != nil {
		return nil, err
	}
	if err := l.await(ctx, turns); err != nil {
		return nil, err
	}
	f, err := stop()
	if err != nil {
		return nil, err
	}
	stamps, err := l.responses(ctx, warm, turns, uint64(2*warm)+1) // all turns before have ended
	if err != nil {
		return nil, err
	}
	took := make([]float64, turns)
	for n := range took {
		took[n] = stamps[n].at.Sub(time.Unix(0, answer.Sent[n])).Seconds() * 1000
	}
	slices.Sort(took)
	f["p50_ms"], f["p99_ms"] = quantile(took, 0.5), quantile(took, 0.99)
	return f, nil
}

// idle watches a worker that has nothing to do.
func (l *lab) idle(ctx context.Context, warm int, d time.Duration) (figures, error) {
	if err := l.warm(ctx, warm); err != nil {
		return nil, err
	}
	before, err := l.worker.do(ctx, request{Do: "usage"})
	if err != nil {
		return nil, err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now, err := l.worker.do(ctx, request{Do: "usage"})
	if err != nil {
		return nil, err
	}
	return figures{
		"idle_cpu_percent": 100 * (now.Usage.CPU - before.Usage.CPU).Seconds() / d.Seconds(),
		"idle_rss_mib":     float64(now.Usage.RSS) / (1 << 20),
	}, nil
}

// window begins the profile and the count of what the roles use; the returned function ends it.
func (l *lab) window(ctx context.Context, turns int) (stop func() (figures, error), err error) {
	names := []string{"server", "worker"}
	roles := []role{l.server, l.worker}
	if l.point.Topology == embeddedTopology { // one process, publisher included
		names, roles = []string{"process"}, []role{l.worker}
	}
	for _, r := range roles {
		if _, err := r.do(ctx, request{Do: "settle"}); err != nil {
			return nil, err
		}
	}
	before, err := usages(ctx, roles)
	if err != nil {
		return nil, err
	}
	if _, err := l.worker.do(ctx, request{Do: "profile"}); err != nil {
		return nil, err
	}
	return func() (figures, error) {
		now, err := usages(ctx, roles)
		if err != nil {
			return nil, err
		}
		if _, err := l.worker.do(ctx, request{Do: "profiled"}); err != nil {
			return nil, err
		}
		f := figures{}
		for i, name := range names {
			f["cpu_us_"+name] = float64((now[i].CPU - before[i].CPU).Microseconds()) / float64(turns)
			f["allocs_"+name] = float64(now[i].Allocs-before[i].Allocs) / float64(turns)
			f["bytes_"+name] = float64(now[i].Bytes-before[i].Bytes) / float64(turns)
		}
		return f, nil
	}, nil
}

func usages(ctx context.Context, roles []role) ([]usage, error) {
	out := make([]usage, len(roles))
	for i, r := range roles {
		answer, err := r.do(ctx, request{Do: "usage"})
		if err != nil {
			return nil, err
		}
		out[i] = answer.Usage
	}
	return out, nil
}
