package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// gatewayArg is the first argument that asks for the measurements of the gateway.
const gatewayArg = "gateway"

// gatewayOptions are the flags.
type gatewayOptions struct {
	repeats     int
	sockets     []int
	streams     int // of AG-UI
	deliveries  int
	rate        int // deliveries a second
	paced       time.Duration
	opened, old int // chats with a history, and its events
	open, idle  int // sockets without events
	rest        time.Duration
	binary      string
	store       string
	command     string
	only        []string
	output
	cpuProfile, memProfile string
}

func parseGateway(args []string, usage io.Writer) (gatewayOptions, error) {
	var o gatewayOptions
	fs := flag.NewFlagSet("bench "+gatewayArg, flag.ContinueOnError)
	fs.SetOutput(usage)
	brief := fs.Bool("brief", false, "few clients and deliveries: shows that everything runs, the figures are rough")
	fs.IntVar(&o.repeats, "repeats", 3, "how often each point is measured")
	sockets := fs.String("sockets", "1,100,1000", "WebSockets of one chat that get each event")
	fs.IntVar(&o.streams, "streams", 100, "AG-UI streams of one chat that get each event")
	fs.IntVar(&o.deliveries, "deliveries", 300_000, "deliveries of a measurement of throughput")
	fs.IntVar(&o.rate, "rate", 20_000, "deliveries a second, of latency")
	fs.DurationVar(&o.paced, "paced", 5*time.Second, "how long a measurement of latency publishes")
	fs.IntVar(&o.opened, "opened", 200, "chats with a history that are opened, one after the other")
	fs.IntVar(&o.old, "old", 100, "events of such a history")
	fs.IntVar(&o.open, "open", 1000, "open WebSockets whose memory is measured")
	fs.IntVar(&o.idle, "idle", 10_000, "the same, for the total")
	fs.DurationVar(&o.rest, "rest", 25*time.Second, "how long they are open before it is measured: longer than the time between pings")
	only := fs.String("only", "", "only these measurements: sockets, streams, history, memory; all if empty")
	fs.StringVar(&o.binary, "gateway", "", "the built gateway (default: it is built)")
	fs.StringVar(&o.store, "store", "", "directory for the store of the server (default the system's for temporary files)")
	fs.StringVar(&o.json, "json", "", "file for all figures as JSON")
	fs.StringVar(&o.cpuProfile, "cpuprofile", "", "file for a CPU profile of the gateway: -only names what is measured, once")
	fs.StringVar(&o.memProfile, "memprofile", "", "file for a profile of its allocations and its heap, likewise")
	if err := fs.Parse(args); err != nil {
		return o, fmt.Errorf("flags: %w", err)
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	o.command, o.only = command("go run ./internal/test/bench "+gatewayArg, fs), list(*only)
	var err error
	if o.sockets, err = numbers("sockets", *sockets, 10_000); err != nil {
		return o, err
	}
	if *brief {
		o.repeats, o.sockets, o.streams, o.deliveries, o.rate, o.paced = 1, []int{100}, 10, 10_000, 2_000, 500*time.Millisecond
		o.opened, o.open, o.idle, o.rest = 10, 100, 0, 0
	}
	if o.repeats < 1 || o.deliveries < 1000 || o.rate < 100 {
		return o, errors.New("want at least -repeats 1, -deliveries 1000 and -rate 100")
	}
	return o, nil
}

func (o *gatewayOptions) profiling() bool { return o.cpuProfile != "" || o.memProfile != "" }

func (o *gatewayOptions) arms() []string {
	if o.profiling() {
		return []string{armGateway}
	}
	return gatewayArms()
}

// gatewayRun is a run of the measurements.
type gatewayRun struct {
	gatewayOptions

	lab       *lab
	frontends role
	chats     int // so far
	rows      gatewayRows
}

// gatewayMeasurement is one of them.
type gatewayMeasurement struct {
	name string
	run  func(g *gatewayRun, ctx context.Context, arm string, s *served) error
}

// gatewayMeasurements in their order. Each has fresh processes.
func (o *gatewayOptions) gatewayMeasurements() []gatewayMeasurement {
	var all []gatewayMeasurement
	add := func(name string, count int, run func(g *gatewayRun, ctx context.Context, arm string, s *served) error) {
		if count > 0 && o.wants(name) {
			all = append(all, gatewayMeasurement{name, run})
		}
	}
	for _, n := range o.sockets {
		add("sockets", n, func(g *gatewayRun, ctx context.Context, arm string, s *served) error {
			return g.deliveriesTo(ctx, arm, s, endpointSocket, n)
		})
	}
	add("streams", o.streams, func(g *gatewayRun, ctx context.Context, arm string, s *served) error {
		return g.deliveriesTo(ctx, arm, s, endpointAGUI, g.streams)
	})
	add("history", o.opened, (*gatewayRun).opening)
	for _, n := range []int{o.open, o.idle} {
		add("memory", n, func(g *gatewayRun, ctx context.Context, arm string, s *served) error {
			return g.memoryOf(ctx, arm, s, n)
		})
	}
	return all
}
