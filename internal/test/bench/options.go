package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The flags of the benchmark, and the points and repeats that follow from them.

// options are the flags.
type options struct {
	repeats     int
	turns, warm int
	topologies  []string
	payloads    []string
	inFlight    []int
	rates       []int
	paced, idle time.Duration
	transport   string
	store       string
	output
	command string

	cpuProfile, memProfile string
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(usage)
	brief := fs.Bool("brief", false, "one repeat of few turns: shows that everything runs, the figures are rough")
	fs.IntVar(&o.repeats, "repeats", 5, "how often each point is measured")
	fs.IntVar(&o.turns, "turns", 5000, "turns of a measurement of throughput; with few in flight fewer are enough")
	fs.IntVar(&o.warm, "warm", 600, "turns before each measurement")
	topologies := fs.String("topologies", "embedded,processes", "where server, worker and publisher run: embedded, processes")
	payloads := fs.String("payloads", "flat,nested", "payloads of throughput: "+payloadsName+"; latency takes the first")
	inFlight := fs.String("inflight", "1,16,64,256,1024", "turns in flight, of throughput")
	rates := fs.String("rates", "100,1000", "turns a second, of latency; empty to leave latency out")
	fs.DurationVar(&o.paced, "paced", 3*time.Second, "how long a measurement of latency publishes")
	fs.DurationVar(&o.idle, "idle", 5*time.Second, "how long an idle worker is watched; 0 omits it")
	fs.StringVar(&o.transport, "transport", overTCP, "how the worker connects to the server in its process: tcp, inprocess")
	fs.StringVar(&o.store, "store", "", "directory for the servers' stores (default the system's for temporary files)")
	o.flags(fs)
	fs.StringVar(&o.cpuProfile, "cpuprofile", "", "file for a CPU profile of the product's worker: only the first point with 256 in flight is measured, once")
	fs.StringVar(&o.memProfile, "memprofile", "", "file for a profile of its allocations, likewise")
	if err := fs.Parse(args); err != nil {
		return o, fmt.Errorf("flags: %w", err)
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	o.command = command("go run ./internal/test/bench", fs)
	o.topologies, o.payloads = list(*topologies), list(*payloads)
	var errs [2]error
	o.inFlight, errs[0] = numbers("inflight", *inFlight, 10_000)
	o.rates, errs[1] = numbers("rates", *rates, 10_000)
	if err := errors.Join(errs[:]...); err != nil {
		return o, err
	}
	if *brief {
		o.repeats, o.turns, o.warm = 1, 1000, 100
		o.inFlight, o.rates, o.paced, o.idle = []int{headline}, []int{1000}, 500*time.Millisecond, 500*time.Millisecond
	}
	if o.profiling() {
		o.inFlight = []int{headline}
	}
	return o, o.check()
}

func (o *options) check() error {
	var errs []error
	if o.repeats < 1 || o.turns < 100 || o.warm < 1 {
		errs = append(errs, errors.New("want at least -repeats 1, -turns 100 and -warm 1"))
	}
	if len(o.topologies) == 0 || len(o.payloads) == 0 || len(o.inFlight) == 0 {
		errs = append(errs, errors.New("-topologies, -payloads and -inflight need a value each"))
	}
	for _, t := range o.topologies {
		if t != embeddedTopology && t != processesTopology {
			errs = append(errs, fmt.Errorf("-topologies %q: want %s or %s", t, embeddedTopology, processesTopology))
		}
	}
	for _, p := range o.payloads {
		if _, err := loadPayload(p); err != nil {
			errs = append(errs, fmt.Errorf("-payloads: %w", err))
		}
	}
	if o.transport != overTCP && o.transport != inProcess {
		errs = append(errs, fmt.Errorf("-transport %q: want %s or %s", o.transport, overTCP, inProcess))
	}
	return errors.Join(errs...)
}

func list(s string) []string {
	return slices.DeleteFunc(strings.Split(s, ","), func(s string) bool { return s == "" })
}

func numbers(name, s string, most int) ([]int, error) {
	var out []int
	for _, text := range list(s) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("-%s: %q is not a number from 1 to %d", name, text, most)
		}
		out = append(out, n)
	}
	return out, nil
}

func (o *options) profiling() bool { return o.cpuProfile != "" || o.memProfile != "" }

// storeDir is where the servers' stores are.
func (o *options) storeDir() string {
	if o.store == "" {
		return os.TempDir()
	}
	return o.store
}

// points are what is measured in each repeat.
func (o *options) points() []point {
	var points []point
	for _, topology := range o.topologies {
		for _, payload := range o.payloads {
			for _, n := range o.inFlight {
				points = append(points, point{Kind: throughput, Topology: topology, Payload: payload, InFlight: n})
			}
		}
		for _, rate := range o.rates {
			points = append(points, point{Kind: latency, Topology: topology, Payload: o.payloads[0], InFlight: headline, Rate: rate})
		}
		if topology == processesTopology && o.idle > 0 {
			points = append(points, point{Kind: idle, Topology: topology, Payload: o.payloads[0], InFlight: headline})
		}
	}
	return points
}

// turnsOf is how many turns a measurement of throughput takes: with one in flight a fifth
// takes as long.
func (o *options) turnsOf(p point) int {
	if p.InFlight < 16 {
		return max(o.turns/5, 100)
	}
	return o.turns
}

func (o *options) settings() settings {
	return settings{
		Repeats: o.repeats, Turns: o.turns, WarmTurns: o.warm, PacedFor: o.paced.String(), Transport: o.transport, Command: o.command,
	}
}
