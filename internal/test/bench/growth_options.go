package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// The flags of `bench growth`: which measurements, their sizes and durations, and -scale, which multiplies what takes
// time.

// growthOptions are the flags of the measurements of growth.
type growthOptions struct {
	only  []string
	store string
	output

	keep        []int // retained turns
	chatRecords int
	readerCount int
	queued      int
	turns, warm int
	workerCount []int
	folderCount []int
	sizes       []int // bytes of structured data
	children    []int
	openCount   int // questions
	parkedCount int
	expiring    int
	answerRate  int
	resumed     int
	floodCount  int           // messages that only wait, of floods
	grace       time.Duration // how long turns of an unknown workflow wait, of floods
	openTurns   []int         // that are swept, growing
	sweepRate   int           // headers and turns a second of a sweep; 0 for no limit
	rate        int
	slowRate    int
	paced, rest time.Duration
	command     string
}

func parseGrowth(args []string, usage io.Writer) (growthOptions, error) {
	var o growthOptions
	fs := flag.NewFlagSet("bench growth", flag.ContinueOnError)
	fs.SetOutput(usage)
	names := make([]string, 0, len(measurements()))
	for _, m := range measurements() {
		names = append(names, m.name)
	}
	only := fs.String("only", "", "measurements to make (default all): "+strings.Join(names, ", "))
	brief := fs.Bool("brief", false, "everything tiny: shows that it runs, the figures mean nothing")
	scale := fs.Float64("scale", 1, "factor of all numbers of turns, and of the times; 0.1 takes about two minutes")
	fs.StringVar(&o.store, "store", "", "directory for the servers' stores (default the system's for temporary files); 15 GB at full size")
	keep := fs.String("retained", "10000,100000,1000000", "turns retained, growing; the greatest is also the one of restart and readers")
	fs.IntVar(&o.chatRecords, "chat-records", 600, "records of a chat that readers open")
	fs.IntVar(&o.readerCount, "readers", 8, "readers at the same time")
	fs.IntVar(&o.queued, "backlog", 100_000, "turns queued while no worker runs")
	fs.IntVar(&o.turns, "turns", 20_000, "turns of a measurement of throughput; of the largest payloads fewer are enough")
	fs.IntVar(&o.warm, "warm", 600, "turns before each measurement")
	workers := fs.String("workers", "1,2,4", "processes of workers")
	workflows := fs.String("workflows", "1,10,100,500", "workflow folders")
	sizes := fs.String("sizes", "1024,65536,1048576", "bytes of structured data")
	children := fs.String("children", "1,2,4", "processes of Python")
	fs.IntVar(&o.openCount, "open", 1200, "questions that are open while new turns come, of waiting")
	fs.IntVar(&o.parkedCount, "parked", 100_000, "turns that are parked, of parked")
	fs.IntVar(&o.expiring, "expiring", 10_000, "questions whose time ends in the same second, of parked")
	fs.IntVar(&o.answerRate, "answer-rate", 200, "answers a second, of waiting and parked")
	fs.IntVar(&o.resumed, "resumed", 8_000, "parked turns that are answered, of parked")
	fs.IntVar(&o.floodCount, "flood", 20_000, "messages that only wait, of each kind of floods")
	fs.DurationVar(&o.grace, "grace", 30*time.Second, "how long turns of an unknown workflow wait, of floods")
	open := fs.String("open-turns", "10000,100000,1000000", "open turns, growing, of sweep")
	fs.IntVar(&o.sweepRate, "sweep-rate", 0, "headers, and turns, a second of a sweep (default no limit; workers have 5,000), of sweep")
	fs.IntVar(&o.rate, "rate", 500, "turns a second, of retained, readers, waiting and floods")
	fs.IntVar(&o.slowRate, "python-rate", 100, "turns a second, of python and of waiting with a Python tool")
	fs.DurationVar(&o.paced, "paced", 15*time.Second, "how long each measurement of latency publishes")
	fs.DurationVar(&o.rest, "idle", time.Minute, "how long an idle worker is watched")
	o.flags(fs)
	if err := fs.Parse(args); err != nil {
		return o, fmt.Errorf("flags: %w", err)
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	o.command = command("go run ./internal/test/bench "+growthArg, fs)
	o.only = list(*only)
	var errs []error
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("-only %q: want some of %s", name, strings.Join(names, ", ")))
		}
	}
	for _, f := range []struct {
		to         *[]int
		name, text string
		most       int
	}{
		{&o.keep, "retained", *keep, 100_000_000},
		{&o.openTurns, "open-turns", *open, 10_000_000},
		{&o.workerCount, "workers", *workers, 64},
		{&o.folderCount, "workflows", *workflows, 999},
		{&o.sizes, "sizes", *sizes, maxData},
		{&o.children, "children", *children, 64},
	} {
		var err error
		*f.to, err = numbers(f.name, f.text, f.most)
		errs = append(errs, err)
		if err == nil && len(*f.to) == 0 {
			errs = append(errs, fmt.Errorf("-%s: want at least one number", f.name))
		}
	}
	if *scale <= 0 || o.chatRecords < 2 || min(o.readerCount, o.queued, o.turns, o.warm, o.rate, o.slowRate, o.openCount, o.parkedCount, o.expiring, o.answerRate, o.resumed, o.floodCount) < 1 {
		errs = append(errs, errors.New("want numbers greater than 0, and at least 2 records of a chat"))
	}
	if err := errors.Join(errs...); err != nil {
		return o, err
	}
	if *brief {
		*scale = 0.002
		o.chatRecords, o.workerCount, o.folderCount, o.children = 20, []int{1, 2}, []int{1, 10}, []int{1, 2}
	}
	o.scale(*scale)
	return o, nil
}

// maxData is the most structured data that fits the server of the payloads.
const maxData = maxMessage - 1<<20

// scale multiplies what takes time.
func (o *growthOptions) scale(by float64) {
	n := func(n, least int) int { return min(n, max(int(float64(n)*by), least)) }
	for i := range o.keep {
		o.keep[i] = n(o.keep[i], 100*(i+1))
	}
	for i := range o.openTurns {
		o.openTurns[i] = n(o.openTurns[i], 100*(i+1))
	}
	o.queued, o.turns, o.warm = n(o.queued, 400), n(o.turns, 200), n(o.warm, 50)
	o.openCount, o.parkedCount, o.expiring = n(o.openCount, 20), n(o.parkedCount, 100), n(o.expiring, 50)
	o.resumed, o.floodCount = n(o.resumed, 50), n(o.floodCount, 100)
	o.grace = min(o.grace, max(time.Duration(float64(o.grace)*by), 300*time.Millisecond))
	o.paced = min(o.paced, max(time.Duration(float64(o.paced)*by), 300*time.Millisecond))
	o.rest = min(o.rest, max(time.Duration(float64(o.rest)*by), 300*time.Millisecond))
}

func (o *growthOptions) wants(name string) bool {
	return len(o.only) == 0 || slices.Contains(o.only, name)
}

func (o *growthOptions) storeDir() string {
	if o.store == "" {
		return os.TempDir()
	}
	return o.store
}
