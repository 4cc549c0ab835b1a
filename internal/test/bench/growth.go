package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/oneturn/oneturn/provision"
)

// growthArg is the first argument that asks for the measurements of growth.
const growthArg = "growth"

// growth measures how the figures change when something grows: retained turns, readers,
// the backlog, workers, workflows, payloads, open questions, parked turns, messages that only wait, open turns that are swept, steps of programs. Each measurement is made once, in processes.
type growth struct {
	growthOptions

	progress io.Writer
	kept     *lab // whose journal has the retained turns; nil before the first that needs it
	tier     provision.Tier
	rows     []growthRow
}

// measurement is one of the measurements of growth.
type measurement struct {
	name string
	run  func(g *growth, ctx context.Context) error
}

// The measurements of questions to people.
const (
	measureWaiting = "waiting"
	measureParked  = "parked"
)

// measureSweep is the measurement of sweeps of open turns.
const measureSweep = "sweep"

// measureFloods is the measurement of messages that only wait.
const measureFloods = "floods"

// measurements in the order in which they are made: the first three share a journal.
func measurements() []measurement {
	return []measurement{
		{"retained", (*growth).retained},
		{"restart", (*growth).restart},
		{"readers", (*growth).readers},
		{"histories", (*growth).histories},
		{"backlog", (*growth).backlog},
		{"workers", (*growth).workers},
		{"workflows", (*growth).workflows},
		{"payloads", (*growth).payloads},
		{"idle", (*growth).idle},
		{"python", (*growth).python},
		{measureWaiting, (*growth).waiting},
		{measureParked, (*growth).parked},
		{measureFloods, (*growth).floods},
		{measureSweep, (*growth).sweeps},
		{measurePrograms, (*growth).programs},
	}
}

// runGrowth makes the measurements that the flags ask for and writes the table.
func runGrowth(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	o, err := parseGrowth(args, progress)
	if err != nil {
		return err
	}
	g := &growth{growthOptions: o, progress: progress}
	defer func() { err = errors.Join(err, g.forget()) }()
	r := growthReport{Machine: readMachine(ctx, o.storeDir()), Command: o.command, LoadAtStart: load()}
	for _, m := range measurements() {
		if !o.wants(m.name) {
			continue
		}
		start := time.Now()
		if err := m.run(g, ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		g.sayf("%s took %s", m.name, time.Since(start).Round(time.Second))
	}
	r.LoadAtEnd, r.Tier, r.TierText, r.Rows = load(), g.tier.Name, g.tier.Text, g.rows
	return o.write(r, out)
}

func (g *growth) sayf(format string, args ...any) {
	fmt.Fprintf(g.progress, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// point is a point of growth: in processes, so that the worker's memory is its own.
func (g *growth) point(payload string, inFlight int) point {
	return point{Kind: throughput, Topology: processesTopology, Payload: payload, InFlight: inFlight}
}

// open starts and provisions a server, and a publisher.
func (g *growth) open(ctx context.Context, s spec) (*lab, error) {
	l, err := openServer(ctx, g.store, g.point(s.Payload, s.InFlight), s)
	if err != nil {
		return nil, err
	}
	if _, err = l.start(ctx, &l.publisher, l.base, "publisher", nil); err == nil {
		g.tier, err = provision.ReadTier(ctx, l.js, l.plan, provision.SyncLazy)
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// with opens a lab, has it measured and closes it.
func (g *growth) with(ctx context.Context, s spec, do func(l *lab) error) (err error) {
	l, err := g.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	return do(l)
}

// retain makes the journal of the kept lab hold so many turns that have ended.
func (g *growth) retain(ctx context.Context, turns int) (*lab, error) {
	if g.kept == nil {
		l, err := g.open(ctx, spec{Payload: "flat", InFlight: headline})
		if err != nil {
			return nil, err
		}
		g.kept = l
	}
	const step = 100_000
	for g.kept.retained < turns {
		n := min(step, turns-g.kept.retained)
		start := time.Now()
		_, err := g.kept.publisher.do(ctx, request{Do: "retain", From: g.kept.retained, Count: n, TurnsAChat: g.chatRecords / 2})
		if err != nil {
			return nil, err
		}
		g.kept.retained += n
		g.kept.stored += uint64(2 * n)
		g.sayf("%d turns retained (%.0f/s)", g.kept.retained, float64(n)/time.Since(start).Seconds())
	}
	return g.kept, nil
}

// forget closes the kept lab.
func (g *growth) forget() error {
	if g.kept == nil {
		return nil
	}
	return g.kept.close()
}
