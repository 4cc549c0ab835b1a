package main

import (
	"context"
	"errors"
	"os"
	"strconv"
)

// Measurements of what tools cost: many workflow folders, a Python tool next to the same one in Go, the number of
// Python processes, and a worker that is idle.

// workflows measures worker with many workflow folders: with Go tools, whose turns are spread
// over all folders, and with Python tools, which are inspected when the worker starts.
func (g *growth) workflows(ctx context.Context) error {
	for _, n := range g.folderCount {
		on := strconv.Itoa(n) + " folders"
		err := g.inFolders(ctx, folders{Count: n}, 0, func(l *lab) error {
			_, ready, err := l.startWorker(ctx, product)
			if err != nil {
				return err
			}
			if err := l.publish(ctx, g.warm, true); err != nil {
				return err
			}
			d, err := l.drain(ctx, 1, g.turns, func() error { return l.publish(ctx, g.turns+1, false) })
			if err != nil {
				return err
			}
			used, err := l.worker.do(ctx, request{Do: "usage"})
			if err != nil {
				return err
			}
			g.addReady(n, on+", Go", ready.Seconds())
			g.add(
				growthRow{Measurement: "workflows", Figure: "rate", Unit: "turns/s", Load: on + ", Go", Value: d.rate},
				growthRow{Measurement: "workflows", Figure: "worker, RSS", Unit: "MiB", Load: on + ", Go", Value: float64(used.Usage.RSS) / mib},
			)
			return nil
		})
		if err != nil {
			return err
		}
		err = g.inFolders(ctx, folders{Count: n, Python: true}, 0, func(l *lab) error {
			_, ready, err := l.startWorker(ctx, product)
			if err != nil {
				return err
			}
			used, err := l.worker.do(ctx, request{Do: "usage"})
			if err != nil {
				return err
			}
			g.addReady(n, on+", Python", ready.Seconds())
			g.add(growthRow{Measurement: "workflows", Figure: "worker, RSS", Unit: "MiB", Load: on + ", Python", Value: float64(used.Usage.RSS) / mib})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *growth) addReady(n int, on string, seconds float64) {
	row := growthRow{Measurement: "workflows", Figure: "process started until ready", Unit: "s", Load: on, Value: seconds}
	if n == 100 {
		row = row.aim("≤ 1 s", seconds <= 1)
	}
	g.add(row)
}

// inFolders opens a lab whose workers read these folders.
func (g *growth) inFolders(ctx context.Context, f folders, children int, do func(l *lab) error) error {
	return g.inFoldersOf(ctx, f, spec{Payload: "flat", InFlight: headline, Children: children}, do)
}

func (g *growth) inFoldersOf(ctx context.Context, f folders, s spec, do func(l *lab) error) (err error) {
	if f.Count == 0 {
		return g.with(ctx, s, do)
	}
	if f.Dir, err = os.MkdirTemp(g.store, "oneturn-bench-"); err != nil {
		return err //nolint:wrapcheck // names the directory
	}
	defer func() { err = errors.Join(err, os.RemoveAll(f.Dir)) }()
	if err := f.write(); err != nil {
		return err
	}
	s.Folders = f
	return g.with(ctx, s, do)
}

// python measures an echo tool in Python next to the same one in Go.
func (g *growth) python(ctx context.Context) error {
	var of [2]waits
	for i, python := range []bool{true, false} {
		err := g.inFolders(ctx, folders{Count: 1, Python: python}, 1, func(l *lab) error {
			if _, _, err := l.startWorker(ctx, product); err != nil {
				return err
			}
			if err := l.publish(ctx, g.warm, true); err != nil {
				return err
			}
			var err error
			of[i], err = l.pace(ctx, g.slowRate, g.paced)
			return err
		})
		if err != nil {
			return err
		}
	}
	on := strconv.Itoa(g.slowRate) + "/s"
	p50, goes := quantile(of[0].ends, 0.5), quantile(of[1].ends, 0.5)
	g.add(
		growthRow{Measurement: "python", Figure: "published to response stored, p50", Unit: "ms", Load: on, Value: p50}.
			comparedWith("Go tool", goes).aim("≤ 0.5 ms more", p50 <= goes+0.5),
		growthRow{Measurement: "python", Figure: "published to response stored, p99", Unit: "ms", Load: on, Value: quantile(of[0].ends, 0.99)}.
			comparedWith("Go tool", quantile(of[1].ends, 0.99)),
	)
	return g.pools(ctx)
}

// pools measures the rate of the Python tool by the number of its processes.
func (g *growth) pools(ctx context.Context) error {
	rate := func(f folders, children int) (rate float64, err error) {
		err = g.inFolders(ctx, f, children, func(l *lab) error {
			d, _, err := drainOne(ctx, l, product, g.warm, g.turns)
			rate = d.rate
			return err
		})
		return rate, err
	}
	base, err := rate(folders{Count: 1}, 0)
	if err != nil {
		return err
	}
	for _, n := range g.children {
		found, err := rate(folders{Count: 1, Python: true}, n)
		if err != nil {
			return err
		}
		g.add(growthRow{Measurement: "python", Figure: "rate", Unit: "turns/s", Load: strconv.Itoa(n) + " processes", Value: found}.comparedWith("Go tool", base))
	}
	return nil
}

// idle watches a worker that has nothing to do, as the table of all figures does, for longer.
func (g *growth) idle(ctx context.Context) error {
	o := options{store: g.store, warm: g.warm, idle: g.rest, transport: overTCP}
	found := map[string]figures{}
	for _, arm := range arms() {
		f, tier, err := measure(ctx, o, point{Kind: idle, Topology: processesTopology, Payload: "flat", InFlight: headline}, arm)
		if err != nil {
			return err
		}
		found[arm], g.tier = f, tier
	}
	for _, arm := range []string{raw, usual} {
		cpu, rss := found[product]["idle_cpu_percent"], found[product]["idle_rss_mib"]
		g.add(
			growthRow{Measurement: "idle", Figure: "worker, CPU", Unit: "% of a core", Load: "none", Value: cpu}.
				comparedWith(arm, found[arm]["idle_cpu_percent"]).aim("≤ 1 %", cpu <= 1),
			growthRow{Measurement: "idle", Figure: "worker, RSS", Unit: "MiB", Load: "none", Value: rss}.
				comparedWith(arm, found[arm]["idle_rss_mib"]).aim("≤ 40 MiB", rss <= 40),
		)
	}
	return nil
}
