// Command programcases runs acceptance cases for plans and orchestrations against a worker, as a black box:
//
//	go run -tags failpoints ./internal/test/programcases [--run REGEXP] [--parallel N] [--falsify] [--keep DIR] DIR…
//
// A case is a JSON file: tools and what they do, one turn, what people, others and faults do to it, and what is
// expected of the journal, the live events and the runs of the tools. Each case has a server and a worker process for
// itself. The command prints a line for each case and a summary, and ends with status 1 if a case fails. Without the
// tag only faults inside tools are possible; cases with others are left out.
//
// With --falsify the expectations of each case that was met are changed, one key at a time: the comparison has to
// notice each change.
//
// The files, in reading order: case.go (the form of a case), run.go, session.go, process.go and check.go (what runs for a case),
// play.go (people, actions), faults.go; workflow.go, worker.go, behaviour.go, models.go and mcp.go (the workflow of a
// case and what its tools and models do); ledger.go and journal.go (what is recorded); promise.go (what holds in every case); observe.go, expect.go with expect_runs.go and expect_records.go, match.go
// and falsify.go (the comparison); report.go (the result).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the main function
	var err error
	if folder := os.Getenv(envFolder); folder != "" {
		err = works(ctx, folder, os.Getenv(envURL), os.Stdin)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // the main function
	}
}

// options are the flags of the command.
type options struct {
	match    *regexp.Regexp
	parallel int
	falsify  bool
	keep     string
	paths    []string
}

func parse(args []string) (*options, error) {
	var o options
	f := flag.NewFlagSet("programcases", flag.ContinueOnError)
	pattern := f.String("run", "", "run the cases whose names match the `regexp`")
	f.IntVar(&o.parallel, "parallel", 2, "run `n` cases at the same time")
	f.BoolVar(&o.falsify, "falsify", false, "change each expectation that is met and check that the change is noticed")
	f.StringVar(&o.keep, "keep", "", "keep the folders of failed cases in `dir`")
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("flags: %w", err)
	}
	var err error
	if o.match, err = regexp.Compile(*pattern); err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	if o.paths = f.Args(); len(o.paths) == 0 {
		return nil, errors.New("no cases: name a folder of cases, for example internal/test/programcases/testdata")
	}
	if o.parallel < 1 {
		return nil, fmt.Errorf("invalid --parallel %d: use at least 1", o.parallel)
	}
	return &o, nil
}

// run runs the cases that args name and writes the report.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	cases, err := load(o.paths)
	if err != nil {
		return err
	}
	var chosen []Case
	for _, c := range cases {
		if o.match.MatchString(c.Name) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no case matches %q", o.match)
	}
	return o.report(out, o.results(ctx, chosen))
}
