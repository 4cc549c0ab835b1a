package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Records of a turn whose tool asks one question.
const (
	recordsOpen   = 2 // call, ask
	recordsParked = 3 // and park
)

// forever is longer than any measurement.
const forever = time.Hour

// waiting measures what new turns have to wait while many questions are open, in memory and
// parked, of Go tools and of Python tools; next to it, in the same run, before and after.
func (g *growth) waiting(ctx context.Context) error {
	for _, python := range []bool{false, true} {
		for _, parks := range []bool{false, true} {
			if err := g.waitingOf(ctx, python, parks); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *growth) waitingOf(ctx context.Context, python, parks bool) error {
	after, records, how := forever, recordsOpen, "in memory"
	if parks {
		after, records, how = -1, recordsParked, "parked"
	}
	f, rate, name := folders{}, g.rate, "Go"
	if python {
		f, rate, name = folders{Count: 1, Python: true, Asks: true}, g.slowRate, "Python"
	}
	on := fmt.Sprintf("%d open %s, %s, %d/s", g.openCount, how, name, rate)
	// Of each slot, four turns wait in memory, and of each process of Python a thousand.
	s := spec{Payload: "flat", InFlight: max(headline, g.openCount/4+1), ParkAfter: after, Children: g.openCount/1000 + 1}
	return g.inFoldersOf(ctx, f, s, func(l *lab) error {
		worker, _, err := l.startWorker(ctx, product)
		if err != nil {
			return err
		}
		if err := l.publish(ctx, g.warm, true); err != nil {
			return err
		}
		quiet, err := l.pace(ctx, rate, g.paced)
		if err != nil {
			return err
		}
		before, err := settled(ctx, worker)
		if err != nil {
			return err
		}
		first := l.published
		if err := l.ask(ctx, g.openCount, records, 0); err != nil {
			return err
		}
		busy, err := l.pace(ctx, rate, g.paced)
		if err != nil {
			return err
		}
		open, err := settled(ctx, worker)
		if err != nil {
			return err
		}
		if _, err := l.answer(ctx, first, g.openCount, g.openCount, g.answerRate); err != nil {
			return err
		}
		again, err := l.pace(ctx, rate, g.paced)
		if err != nil {
			return err
		}
		quiet = waits{slices.Concat(quiet.claims, again.claims), slices.Concat(quiet.ends, again.ends)}
		quiet.sort()
		for _, q := range []struct {
			name      string
			of, allow float64
		}{{"p50", 0.5, 1.25}, {"p99", 0.99, 2}} {
			v, base := quantile(busy.ends, q.of), quantile(quiet.ends, q.of)
			g.add(growthRow{Measurement: measureWaiting, Figure: "published to response stored, " + q.name, Unit: "ms", Load: on, Value: v}.
				comparedWith("none open", base).aim(fmt.Sprintf("≤ %.2f ×", q.allow), v <= q.allow*base))
		}
		g.add(growthRow{Measurement: measureWaiting, Figure: "worker, RSS", Unit: "MiB", Load: on, Value: float64(open.RSS) / mib}.
			comparedWith("none open", float64(before.RSS)/mib))
		return nil
	})
}

// settled is what a worker uses once its garbage is collected.
func settled(ctx context.Context, worker role) (usage, error) {
	if _, err := worker.do(ctx, request{Do: "settle"}); err != nil {
		return usage{}, err
	}
	answer, err := worker.do(ctx, request{Do: "usage"})
	return answer.Usage, err
}

// ask publishes the next turns of the tool that asks and waits until their questions are open;
// records is how many that makes of each turn.
func (l *lab) ask(ctx context.Context, turns, records int, until int64) error {
	if _, err := l.publisher.do(ctx, request{Do: "fill", From: l.published, Count: turns, Ask: true, Until: until}); err != nil {
		return err
	}
	l.published += turns
	if records == recordsOpen {
		l.waiting += uint64(turns)
	}
	return l.awaitRecords(ctx, records*turns)
}

// answers are when some questions were answered, the outcomes, in ms, sorted.
type answers struct {
	handed []float64 // until the tool had the answer
	ends   []float64 // until the response was stored
}

// split parts those to the first n answers from the rest.
func (a answers) split(n int) (first, rest answers) {
	n = min(n, len(a.ends)/2)
	return answers{a.handed[:n], a.ends[:n]}, answers{a.handed[n:], a.ends[n:]}
}

func (a answers) sort() {
	slices.Sort(a.handed)
	slices.Sort(a.ends)
}

// answer answers some of the questions of turns at a fixed rate, and waits for the responses.
func (l *lab) answer(ctx context.Context, from, of, count, rate int) (answers, error) {
	start, err := l.lastRecord(ctx)
	if err != nil {
		return answers{}, err
	}
	r := request{Do: "answer", From: from, Of: of, Count: count, Rate: rate}
	sent, err := l.publisher.do(ctx, r)
	if err != nil {
		return answers{}, err
	}
	if l.waiting > 0 {
		l.waiting -= uint64(count)
	}
	if err := l.settle(ctx); err != nil {
		return answers{}, err
	}
	return l.sinceThen(ctx, answered(r), start, func(n int) time.Time { return time.Unix(0, sent.Sent[n]) })
}
