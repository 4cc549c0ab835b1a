// Command bench measures the whole path of a turn, from published to response stored, next to two baselines in the same
// run: raw, the physical limit of storing two events a turn, and usual, what one writes with nats.go. docs/performance.md
// describes the method and the results, docs/notes/performance-diary.md has the complete tables.
//
//	go run ./internal/test/bench                       the whole table, about a quarter of an hour
//	go run ./internal/test/bench -brief                a short run, in seconds
//	go run ./internal/test/bench -cpuprofile cpu.out   profile the product at one point instead
//	go run ./internal/test/bench growth                what grows with what: retained turns, readers, workers, …
//	go run ./internal/test/bench gateway               deliveries of the gateway, its memory, next to a plain subscriber
//
// # Reading order
//
//	options.go, main.go                     what is measured, and the loop over points, arms and repeats
//	lab.go, process_role.go                 server, worker and publisher of one measurement
//	server.go, worker.go, publisher.go      the three roles; baseline*.go are the other two arms of the worker
//	measure.go, stats.go, usage*.go         throughput, latency and use of memory and CPU
//	payload.go, questions.go, workflow_folders.go  what turns carry, and their tools
//	report.go, output.go, machine.go        the table
//	growth*.go, grow_*.go                   what grows with what, one file for each kind of measurement
//	gateway.go, gateway_measure.go, gateway_report.go  the gateway: what is measured, and the table
//	gateway_lab.go, gateway_relay.go        its process, and the baseline; gateway_process.go is the gateway under a profiler
//	gateway_frontends.go, gateway_sockets.go  the publisher of its events, and its clients
//	fill_journal.go, sweeper.go, remote.go  a full journal, a worker that only sweeps, roles in other processes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
)

func main() {
	ctx := context.Background()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == childArg:
		err = child(ctx, os.Stdin, os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == growthArg:
		err = runGrowth(ctx, os.Args[2:], os.Stdout, os.Stderr)
	case len(os.Args) > 1 && os.Args[1] == gatewayArg:
		err = runGateway(ctx, os.Args[2:], os.Stdout, os.Stderr)
	default:
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // this is a main function
	}
}

// run measures what the flags ask for, writes the table and reports on progress how far it is.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parseOptions(args, progress)
	if err != nil {
		return err
	}
	if o.profiling() {
		return profile(ctx, o, out)
	}
	points := o.points()
	found := results{}
	r := report{Machine: readMachine(ctx, o.storeDir()), Settings: o.settings()}
	r.Settings.LoadAtStart = load()
	for repeat := range o.repeats {
		for n, p := range points {
			fmt.Fprintf(progress, "\rrepeat %d of %d, point %d of %d ", repeat+1, o.repeats, n+1, len(points))
			for i := range arms() {
				// Each repeat begins with another arm, so that none always runs first.
				arm := arms()[(i+repeat)%len(arms())]
				f, tier, err := measure(ctx, o, p, arm)
				if err != nil {
					return err
				}
				found.add(p, arm, f)
				r.Tier, r.TierText = tier.Name, tier.Text
			}
		}
	}
	fmt.Fprintln(progress)
	r.Settings.LoadAtEnd = load()
	r.Rows = found.rows(points, r.Tier)
	return o.write(r, out)
}

func arms() []string { return []string{product, raw, usual} }

// profile measures the product once, at the first point asked for, with the profiles of the
// process that the worker is in.
func profile(ctx context.Context, o options, out io.Writer) error {
	if o.memProfile != "" {
		runtime.MemProfileRate = memProfileRate
	}
	points := o.points()
	p := points[slices.IndexFunc(points, func(p point) bool { return p.Kind == throughput })]
	f, tier, err := measure(ctx, o, p, product)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s, %s, tier %s, under the profiler:\n", p.Topology, p.Payload, p.load(), tier.Name)
	for _, m := range metrics {
		if v, ok := f[m.name]; ok {
			fmt.Fprintf(out, "  %-22s %.*f %s\n", m.title, m.digits, v, m.unit)
		}
	}
	return nil
}
