package main

import (
	"context"
	"fmt"
	"strconv"
)

// Measurements of load: a long backlog, several worker processes on one backlog and how evenly they share it, and
// structured data of several sizes.

// drainOne has one new worker drain a backlog, and returns what that process used.
func drainOne(ctx context.Context, l *lab, arm string, warm, turns int) (drained, usage, error) {
	if err := l.publish(ctx, warm+turns, false); err != nil {
		return drained{}, usage{}, err
	}
	var worker role
	d, err := l.drain(ctx, warm, turns, func() (err error) {
		worker, _, err = l.startWorker(ctx, arm)
		return err
	})
	if err != nil {
		return drained{}, usage{}, err
	}
	used, err := worker.do(ctx, request{Do: "usage"})
	if err != nil {
		return drained{}, usage{}, err
	}
	return d, used.Usage, l.stop(worker)
}

// backlog measures a long backlog next to the steady rate: the rate of the turns of a usual
// measurement of throughput, in the same journal.
func (g *growth) backlog(ctx context.Context) error {
	var rates [2]float64
	for i, arm := range []string{product, raw} {
		err := g.with(ctx, spec{Payload: "flat", InFlight: headline}, func(l *lab) error {
			steady, small, err := drainOne(ctx, l, arm, g.warm, g.turns)
			if err != nil {
				return err
			}
			long, large, err := drainOne(ctx, l, arm, g.warm, g.queued-g.warm)
			if err != nil {
				return err
			}
			rates[i] = long.rate
			if arm != product {
				return nil
			}
			on := strconv.Itoa(g.queued) + " queued"
			of := fmt.Sprintf("%d queued", g.turns+g.warm)
			peak := float64(large.Peak) / mib
			perTurn := func(u usage, turns int) float64 { return float64(u.CPU.Microseconds()) / float64(turns) }
			g.add(
				growthRow{Measurement: "backlog", Figure: "worker, CPU", Unit: "µs/turn", Load: on, Value: perTurn(large, g.queued)}.
					comparedWith(of, perTurn(small, g.turns+g.warm)),
				growthRow{Measurement: "backlog", Figure: "rate", Unit: "turns/s", Load: on, Value: long.rate}.
					comparedWith(of, steady.rate).aim("≥ 0.80", long.rate >= 0.8*steady.rate),
				growthRow{Measurement: "backlog", Figure: "worker, greatest RSS", Unit: "MiB", Load: on, Value: peak}.
					comparedWith(of, float64(small.Peak)/mib).aim("≤ 300 MiB", peak <= 300),
			)
			return nil
		})
		if err != nil {
			return err
		}
	}
	g.add(growthRow{Measurement: "backlog", Figure: "rate", Unit: "turns/s", Load: strconv.Itoa(g.queued) + " queued", Value: rates[0]}.comparedWith(raw, rates[1]))
	return nil
}

// workers measures several worker processes on one backlog.
func (g *growth) workers(ctx context.Context) error {
	for _, n := range g.workerCount {
		var rates [2]float64
		fairness := 0.0
		for i, arm := range []string{product, raw} {
			err := g.with(ctx, spec{Payload: "flat", InFlight: headline}, func(l *lab) error {
				for range n {
					if _, _, err := l.startWorker(ctx, arm); err != nil {
						return err
					}
				}
				if err := l.publish(ctx, g.warm, true); err != nil {
					return err
				}
				d, err := l.drain(ctx, 1, g.turns, func() error { return l.publish(ctx, g.turns+1, false) })
				if err != nil {
					return err
				}
				rates[i] = d.rate
				if arm == product {
					fairness = d.fairness(n)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		on := strconv.Itoa(n) + " workers"
		g.add(growthRow{Measurement: "workers", Figure: "rate of all", Unit: "turns/s", Load: on, Value: rates[0]}.comparedWith(raw, rates[1]))
		if n > 1 {
			g.add(growthRow{Measurement: "workers", Figure: "turns of the busiest / the idlest", Unit: "", Load: on, Value: fairness})
		}
	}
	return nil
}

// fairness is how many turns the busiest of n workers did for each of the one that did the
// least; the least is at least one.
func (d drained) fairness(n int) float64 {
	most, least := 0, 0
	for _, turns := range d.owners {
		most = max(most, turns)
		if least == 0 || turns < least {
			least = turns
		}
	}
	if len(d.owners) < n {
		least = 1
	}
	return float64(most) / float64(max(least, 1))
}

// maxMessage is the server's limit where payloads are large.
const maxMessage = 16 << 20

// payloads measures structured data of several sizes.
func (g *growth) payloads(ctx context.Context) error {
	for _, size := range g.sizes {
		inFlight := min(headline, max(16, headline*1024*16/size)) // the larger, the fewer
		turns := min(g.turns, max(20, g.turns*1024*8/size))
		var rates [2]float64
		var used usage
		for i, arm := range []string{product, raw} {
			s := spec{Payload: rowsPayload + strconv.Itoa(size), InFlight: inFlight, MaxPayload: maxMessage}
			err := g.with(ctx, s, func(l *lab) error {
				d, u, err := drainOne(ctx, l, arm, min(g.warm, turns/4), turns)
				if err != nil {
					return err
				}
				if rates[i] = d.rate; arm == product {
					used = u
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		on := fmt.Sprintf("%d KiB, %d in flight", size/1024, inFlight)
		perMiB := float64(size) / mib
		g.add(
			growthRow{Measurement: "payloads", Figure: "rate", Unit: "turns/s", Load: on, Value: rates[0]}.comparedWith(raw, rates[1]),
			growthRow{Measurement: "payloads", Figure: "data", Unit: "MiB/s", Load: on, Value: rates[0] * perMiB}.comparedWith(raw, rates[1]*perMiB),
			growthRow{Measurement: "payloads", Figure: "worker, greatest RSS", Unit: "MiB", Load: on, Value: float64(used.Peak) / mib},
		)
	}
	return nil
}
