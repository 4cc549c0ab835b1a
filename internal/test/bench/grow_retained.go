package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Measurements of a journal that retains ever more ended turns: what a claim waits for, the memory of server and
// worker, and how long a restart takes.

const mib = 1 << 20

// retained measures the wait for a claim, and memory, with ever more turns in the journal.
func (g *growth) retained(ctx context.Context) error {
	first := map[string]float64{}
	for i, n := range g.keep {
		l, err := g.retain(ctx, n)
		if err != nil {
			return err
		}
		w, used, err := g.claims(ctx, l, product)
		if err != nil {
			return err
		}
		base, _, err := g.claims(ctx, l, raw)
		if err != nil {
			return err
		}
		server, err := l.server.do(ctx, request{Do: "usage"})
		if err != nil {
			return err
		}
		on := strconv.Itoa(n) + " turns"
		for _, x := range []struct {
			figure   string
			of, base float64
		}{
			{"published to claim stored, p50", quantile(w.claims, 0.5), quantile(base.claims, 0.5)},
			{"published to claim stored, p99", quantile(w.claims, 0.99), quantile(base.claims, 0.99)},
			{"published to response stored, p99", quantile(w.ends, 0.99), quantile(base.ends, 0.99)},
		} {
			row := growthRow{Measurement: "retained", Figure: x.figure, Unit: "ms", Load: on, Value: x.of}.comparedWith(raw, x.base)
			if i == 0 {
				first[x.figure] = x.of
			} else if x.figure == "published to claim stored, p99" {
				row = row.aim(fmt.Sprintf("≤ 2 × the figure of %d", g.keep[0]), x.of <= 2*first[x.figure])
			}
			g.add(row)
		}
		g.add(
			growthRow{Measurement: "retained", Figure: "worker, RSS", Unit: "MiB", Load: on, Value: float64(used.RSS) / mib},
			growthRow{Measurement: "retained", Figure: "server, RSS", Unit: "MiB", Load: on, Value: float64(server.Usage.RSS) / mib},
		)
	}
	return nil
}

// claims runs a separate worker for a while.
func (g *growth) claims(ctx context.Context, l *lab, arm string) (waits, usage, error) {
	worker, _, err := l.startWorker(ctx, arm)
	if err != nil {
		return waits{}, usage{}, err
	}
	if err := l.publish(ctx, g.warm, true); err != nil {
		return waits{}, usage{}, err
	}
	w, err := l.pace(ctx, g.rate, g.paced)
	if err != nil {
		return waits{}, usage{}, err
	}
	used, err := worker.do(ctx, request{Do: "usage"})
	if err != nil {
		return waits{}, usage{}, err
	}
	return w, used.Usage, l.stop(worker)
}

// restart measures how long it takes from the start of the server until a worker is ready.
func (g *growth) restart(ctx context.Context) error {
	most := slices.Max(g.keep)
	l, err := g.retain(ctx, most)
	if err != nil {
		return err
	}
	return g.with(ctx, spec{Payload: "flat", InFlight: headline}, func(empty *lab) error {
		for _, crash := range []bool{false, true} {
			server, ready, err := restarted(ctx, l, crash)
			if err != nil {
				return err
			}
			baseServer, baseReady, err := restarted(ctx, empty, crash)
			if err != nil {
				return err
			}
			after := map[bool]string{false: "after a stop", true: "after a crash"}[crash]
			on := strconv.Itoa(most) + " turns, " + after
			g.add(
				growthRow{Measurement: "restart", Figure: "server started", Unit: "s", Load: on, Value: server.Seconds()}.comparedWith("empty", baseServer.Seconds()),
				growthRow{Measurement: "restart", Figure: "until a worker is ready", Unit: "s", Load: on, Value: ready.Seconds()}.comparedWith("empty", baseReady.Seconds()),
			)
		}
		return nil
	})
}

func restarted(ctx context.Context, l *lab, crash bool) (server, ready time.Duration, err error) {
	if server, err = l.restart(ctx, crash); err != nil {
		return 0, 0, err
	}
	worker, took, err := l.startWorker(ctx, product)
	if err != nil {
		return 0, 0, err
	}
	return server, server + took, l.stop(worker)
}
