package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// options of the demo.
type options struct {
	worker string    // path of the worker's binary
	python string    // interpreter for the tools; "" = found as by any worker
	out    io.Writer // receives the report
}

// scenario is one thing that is shown. It reports what happens with demo.detailf and whether
// a promise was kept with demo.checkf; an error means that it could not run.
type scenario struct {
	title string
	run   func(ctx context.Context, d *demo) error
}

func scenarios() []scenario {
	return []scenario{
		{"One turn, published three times, without Nats-Msg-Id", threeTimes},
		{"A turn whose data does not fit the model of the tool", wrongData},
		{"kill -9 of the worker inside an unsafe tool", killUnsafe},
		{"kill -9 of the worker inside an idempotent tool", killIdempotent},
		{"kill -9 of the worker whose tool waits for a person", killWaiting},
		{"kill -9 of all workers while a turn is parked", killAllParked},
		{"kill -9 of the worker of a plan, after its first call", killPlan},
		{"kill -9 of the worker of an orchestration, after its group of agents", killOrchestration},
		{"kill -9 of the worker of an agent's message, in the tool that its text calls", killInterview},
		{"Afterwards", afterwards},
	}
}

// scenarioTimeout bounds a scenario; the longest takes about 4 s.
const scenarioTimeout = 30 * time.Second

// runDemo runs all scenarios. It returns nil only if every promise was kept. All processes it
// started have ended when it returns.
func runDemo(ctx context.Context, o options) (err error) {
	begin := time.Now()
	d, err := newDemo(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.cleanUp()) }()
	d.printf("oneturn demo: a NATS server in this process and two workers (processes %s).\n"+
		"Each run of a tool adds a line to a ledger file, outside NATS: that is what is counted.", d.workers)
	for i, scenario := range scenarios() {
		d.printf("\n%d. %s", i+1, scenario.title)
		if err := d.run(ctx, scenario); err != nil {
			return fmt.Errorf("scenario %d, %s: %w%s", i+1, scenario.title, err, d.workers.logTail())
		}
	}
	if d.broken > 0 {
		return fmt.Errorf("%d of %d promises were not kept%s", d.broken, d.checks, d.workers.logTail())
	}
	d.printf("\nAll %d promises kept, in %.1f s. Every turn has exactly one response; see README.md for what that means.",
		d.checks, time.Since(begin).Seconds())
	return nil
}

func (d *demo) run(ctx context.Context, scenario scenario) error {
	ctx, cancel := context.WithTimeoutCause(ctx, scenarioTimeout, fmt.Errorf("scenario took longer than %s", scenarioTimeout))
	defer cancel()
	return scenario.run(ctx, d)
}
