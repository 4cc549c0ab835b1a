package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/oneturn/oneturn/events"
)

// parked measures many turns that are parked: what they cost the worker that has parked them,
// how fast one resumes, what they cost a restart, and the outcome of questions whose time ends
// in the same second.
func (g *growth) parked(ctx context.Context) error {
	return g.inFoldersOf(ctx, folders{}, spec{Payload: "flat", InFlight: headline, ParkAfter: -1}, func(l *lab) error {
		if err := g.parkMany(ctx, l); err != nil {
			return err
		}
		return g.expireMany(ctx, l)
	})
}

func (g *growth) parkMany(ctx context.Context, l *lab) error {
	on := strconv.Itoa(g.parkedCount) + " parked"
	worker, _, err := l.startWorker(ctx, product)
	if err != nil {
		return err
	}
	if err := l.publish(ctx, g.warm, true); err != nil {
		return err
	}
	first := l.published
	if err := l.ask(ctx, g.warm, recordsParked, 0); err != nil { // what the first ones make is not a cost of many
		return err
	}
	before, err := settled(ctx, worker)
	if err != nil {
		return err
	}
	begin := time.Now()
	const step = 20_000
	for left := g.parkedCount; left > 0; left -= step {
		if err := l.ask(ctx, min(left, step), recordsParked, 0); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	g.sayf("%s (%.0f/s)", on, float64(g.parkedCount)/took.Seconds())
	with, err := settled(ctx, worker)
	if err != nil {
		return err
	}
	cost := float64(with.RSS-before.RSS) / mib
	g.add(
		growthRow{Measurement: measureParked, Figure: "turns that ask and are parked", Unit: "/s", Load: on, Value: float64(g.parkedCount) / took.Seconds()},
		growthRow{Measurement: measureParked, Figure: "worker, RSS", Unit: "MiB", Load: on, Value: float64(with.RSS) / mib}.
			comparedWith("before", float64(before.RSS)/mib).aim("≤ 50 MiB more", cost <= 50),
	)
	went, err := l.answer(ctx, first, g.warm+g.parkedCount, min(g.resumed+g.answerRate, g.parkedCount), g.answerRate)
	if err != nil {
		return err
	}
	cold, warm := went.split(g.answerRate)
	g.resumes(cold, fmt.Sprintf("%s, first second of %d answers/s", on, g.answerRate), "")
	g.resumes(warm, fmt.Sprintf("%s, %d answers/s", on, g.answerRate), "≤ 50 ms")
	server, ready, err := restarted(ctx, l, false)
	if err != nil {
		return err
	}
	g.add(
		growthRow{Measurement: measureParked, Figure: "server started", Unit: "s", Load: on + ", after a stop", Value: server.Seconds()},
		growthRow{Measurement: measureParked, Figure: "until a worker is ready", Unit: "s", Load: on + ", after a stop", Value: ready.Seconds()}.
			aim("≤ 2 s", ready <= 2*time.Second),
	)
	return nil
}

// resumes reports how fast parked turns resumed.
func (g *growth) resumes(a answers, load, aim string) {
	a.sort()
	for _, x := range []struct {
		what string
		ms   []float64
	}{{"answered to tool has it", a.handed}, {"answered to response stored", a.ends}} {
		p99 := growthRow{Measurement: measureParked, Figure: x.what + ", p99", Unit: "ms", Load: load, Value: quantile(x.ms, 0.99)}
		if aim != "" {
			p99 = p99.aim(aim, p99.Value <= 50)
		}
		g.add(growthRow{Measurement: measureParked, Figure: x.what + ", p50", Unit: "ms", Load: load, Value: quantile(x.ms, 0.5)}, p99)
	}
}

// expireMany has the time of many questions end in one second.
func (g *growth) expireMany(ctx context.Context, l *lab) error {
	if _, _, err := l.startWorker(ctx, product); err != nil {
		return err
	}
	if err := l.publish(ctx, g.warm, true); err != nil {
		return err
	}
	const slowly = 500 // turns a second that are parked before the first time is over, at the least
	first, due := l.published, time.Now().Add(2*time.Second+time.Duration(g.expiring)*time.Second/slowly)
	if err := l.ask(ctx, g.expiring, recordsParked, due.UnixNano()); err != nil {
		return err
	}
	if time.Now().After(due) {
		return fmt.Errorf("%d questions were not parked before the first expired", g.expiring)
	}
	start, err := l.lastRecord(ctx)
	if err != nil {
		return err
	}
	if err := await(ctx, due.Add(time.Second)); err != nil { // the last of them
		return err
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	late, err := l.sinceThen(ctx, series(first, g.expiring), start, func(n int) time.Time { return due.Add(time.Duration(until(n, g.expiring))) })
	if err != nil {
		return err
	}
	late.sort()
	on := fmt.Sprintf("%d expire in 1 s", g.expiring)
	last, err := l.journal.GetLastMsgForSubject(ctx, l.ids.JournalSubject("e.*.*.*.*."+events.KindToolResponse))
	if err != nil {
		return fmt.Errorf("read the last response: %w", err)
	}
	g.add(
		growthRow{Measurement: measureParked, Figure: "expired to response stored, p50", Unit: "ms", Load: on, Value: quantile(late.ends, 0.5)},
		growthRow{Measurement: measureParked, Figure: "expired to response stored, p99", Unit: "ms", Load: on, Value: quantile(late.ends, 0.99)},
		growthRow{Measurement: measureParked, Figure: "first expired to last response", Unit: "s", Load: on, Value: last.Time.Sub(due).Seconds()},
	)
	return nil
}

// sinceThen is how long it took since then, for each of some turns in their order, whose responses are among
// the records after a sequence of the journal.
func (l *lab) sinceThen(ctx context.Context, turns []int, after uint64, then func(n int) time.Time) (answers, error) {
	a := answers{handed: make([]float64, len(turns))}
	ms := func(n int, at time.Time) float64 { return at.Sub(then(n)).Seconds() * 1000 }
	stamps, err := l.stamps(ctx, events.KindToolResponse, turns, after+1, func(n int, event []byte) error {
		at, err := handedAt(event)
		a.handed[n] = ms(n, at)
		return err
	})
	if err != nil {
		return answers{}, err
	}
	for n, s := range stamps {
		a.ends = append(a.ends, ms(n, s.at))
	}
	return a, nil
}
