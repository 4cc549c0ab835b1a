package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tool"
)

// measurePrograms is the measurement of programs: what their steps cost next to turns of the same tool, and what parked ones keep
// in the memory of their worker. The worker is in this process, the server in another one.
const measurePrograms = "programs"

const programsManifest = `
agents: {One: {}, Plans: {}, Groups: {}, Asks: {}}
tools:
- {name: work, kind: go, agent: One, effect: idempotent}
- {name: ask, kind: go, agent: Asks, effect: replay}
- {name: run_plan, kind: plan, agent: Plans, uses: [work, ask]}
- {name: run_group, kind: orchestrate, agent: Groups, uses: [work], program: {parallel: 16}}
`

type work struct {
	N int `json:"n"`
}

// programTools are the tools of the manifest: one that does nothing, and one that asks.
func programTools() []oneturn.Tool {
	return []oneturn.Tool{
		oneturn.NewTool("work", func(_ context.Context, in work) (work, error) { return in, nil }, oneturn.ToolOptions{}),
		oneturn.NewTool("ask", func(ctx context.Context, in work) (decision, error) {
			return tool.Ask[decision](ctx, tool.Question{Component: "Approval", Payload: map[string]any{"n": in.N}})
		}, oneturn.ToolOptions{}),
	}
}

// programArm is one kind of turns of the measurement.
type programArm struct {
	name  string
	agent string
	calls int // of tools, in each turn
	data  any
}

func planOf(tool string, calls int) any {
	list := make([]any, calls)
	for n := range list {
		list[n] = map[string]any{"tool_name": tool, "arguments": map[string]any{"n": n}}
	}
	return map[string]any{"type": "tool_calls", "calls": list}
}

func groupOf(calls int) any {
	list := make([]any, calls)
	for n := range list {
		list[n] = map[string]any{"agent_id": "work", "result_key": "k" + strconv.Itoa(n), "with": map[string]any{"n": n}}
	}
	return map[string]any{"plan": map[string]any{"steps": []any{map[string]any{"id": "group", "parallel": map[string]any{"steps": list, "max_concurrency": calls}}}}}
}

func programArms() []programArm {
	plans, groups := []int{1, 5, 20, 50}, []int{4, 16}
	arms := append(make([]programArm, 0, 1+len(plans)+len(groups)), programArm{"turns", "One", 1, work{}})
	for _, n := range plans {
		arms = append(arms, programArm{fmt.Sprintf("plans of %d calls", n), "Plans", n, planOf("work", n)})
	}
	for _, n := range groups {
		arms = append(arms, programArm{fmt.Sprintf("groups of %d calls", n), "Groups", n, groupOf(n)})
	}
	return arms
}

// programRounds is how often each arm runs, one arm after the other, so that the load of the machine is the same for all.
const programRounds = 7

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// programs makes the measurement.
func (g *growth) programs(ctx context.Context) error {
	return g.with(ctx, spec{Payload: "flat", InFlight: headline}, func(l *lab) (err error) {
		dir := filepath.Join(l.dir, "programs")
		if err := os.MkdirAll(filepath.Join(dir, "Programs"), 0o700); err != nil {
			return fmt.Errorf("make the workflow: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "Programs", "oneturn.yaml"), []byte(programsManifest), 0o600); err != nil {
			return fmt.Errorf("write the workflow: %w", err)
		}
		if err := g.stepTimes(ctx, l, dir); err != nil {
			return err
		}
		return g.parkedPrograms(ctx, l, dir)
	})
}

// stepTimes measures turns of one call, and the calls of programs, as many of each.
func (g *growth) stepTimes(ctx context.Context, l *lab, dir string) error {
	p, err := startPrograms(ctx, l, dir, oneturn.Config{Slots: headline})
	if err != nil {
		return err
	}
	arms := programArms()
	perCall := make([][]float64, len(arms)) // µs, of each round
	for range programRounds {
		for n, arm := range arms {
			if len(perCall[n]) == 0 {
				if err := p.run(ctx, arm, max(g.warm/arm.calls, 1)); err != nil {
					return errors.Join(err, p.stop())
				}
			}
			turns := max(g.turns/programRounds/arm.calls, 1)
			begin := time.Now()
			if err := p.run(ctx, arm, turns); err != nil {
				return errors.Join(err, p.stop())
			}
			perCall[n] = append(perCall[n], float64(time.Since(begin).Microseconds())/float64(turns*arm.calls))
		}
	}
	var base float64
	for n, arm := range arms {
		row := growthRow{Measurement: measurePrograms, Figure: "time per call, median", Unit: "µs", Load: arm.name, Value: median(perCall[n])}
		switch {
		case n == 0:
			base = row.Value
		case arm.calls >= 20:
			row = row.comparedWith("turns", base).aim("≤ 1.1 × a turn", row.Value <= 1.1*base)
		default:
			row = row.comparedWith("turns", base)
		}
		g.sayf("%s: %.0f µs a call", arm.name, row.Value)
		g.add(row)
	}
	return p.stop()
}

// parkedPrograms measures what parked programs, and as many parked turns, keep in the memory of the process of their worker.
func (g *growth) parkedPrograms(ctx context.Context, l *lab, dir string) error {
	most := min(g.parkedCount, 10_000)
	kept := map[string]float64{}
	for _, arm := range []struct {
		programArm

		records int
	}{
		{programArm{"turns", "Asks", 1, work{}}, recordsParked},
		{programArm{"programs", "Plans", 1, planOf("ask", 1)}, recordsParked + 2}, // the program, and the call of the step
	} {
		p, err := startPrograms(ctx, l, dir, oneturn.Config{Slots: headline, ParkImmediately: true})
		if err != nil {
			return err
		}
		park := func(n int) error {
			info, err := l.journal.Info(ctx)
			if err != nil {
				return fmt.Errorf("read the journal: %w", err)
			}
			l.stored = info.State.Msgs
			if err := p.publish(ctx, arm.programArm, n); err != nil {
				return err
			}
			return l.awaitRecords(ctx, n*arm.records)
		}
		if err := park(g.warm); err != nil { // what the first ones make is not a cost of many
			return errors.Join(err, p.stop())
		}
		before := heap()
		if err := park(most); err != nil {
			return errors.Join(err, p.stop())
		}
		kept[arm.name] = max(float64(heap())-float64(before), 1) / float64(most)
		if err := p.stop(); err != nil {
			return err
		}
	}
	row := growthRow{Measurement: measurePrograms, Figure: "heap of the worker for each that is parked", Unit: "bytes", Load: fmt.Sprintf("%d programs", most), Value: kept["programs"]}
	g.add(row.comparedWith("turns", kept["turns"]).aim("≤ 256 bytes more", kept["programs"] <= kept["turns"]+256))
	return nil
}

// heap is how many bytes of the heap are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers of the first one have freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// programRunner publishes turns to a worker in this process, and counts their responses.
type programRunner struct {
	client *oneturn.Client
	nc     *nats.Conn
	cancel context.CancelFunc
	over   chan error
	ended  atomic.Int64  // turns
	more   chan struct{} // with room for one: ended has grown
	failed atomic.Int64
	next   atomic.Int64 // turn key
}

// startPrograms starts a worker and returns when it consumes.
func startPrograms(ctx context.Context, l *lab, dir string, c oneturn.Config) (*programRunner, error) {
	nc, err := nats.Connect(l.base.URL)
	if err != nil {
		return nil, fmt.Errorf("connect the worker: %w", err)
	}
	c.Workflows, c.Tools = dir, programTools()
	c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	p := &programRunner{nc: nc, over: make(chan error, 1), more: make(chan struct{}, 1)}
	p.next.Store(time.Now().UnixNano())
	if p.client, err = oneturn.NewClient(nc, oneturn.ClientOptions{}); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	w, err := oneturn.NewWorker(nc, c)
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	if _, err := nc.Subscribe(l.ids.Prefix()+".events.*.*.*.0."+events.KindToolResponse, p.response); err != nil {
		return nil, errors.Join(fmt.Errorf("subscribe to responses: %w", err), p.stop())
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	go func() { p.over <- w.Run(running) }()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for w.Ready() != nil {
		select {
		case err := <-p.over:
			p.over <- err
			return nil, errors.Join(fmt.Errorf("the worker ended before it was ready: %w", err), p.stop())
		case <-tick.C:
		}
	}
	return p, nil
}

func (p *programRunner) response(m *nats.Msg) {
	if r, err := events.ReadResponse(m.Data); err != nil || !r.Success {
		p.failed.Add(1)
	}
	p.ended.Add(1)
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// publishers is how many goroutines publish.
const publishers = 32

// publish publishes turns and returns when they are stored.
func (p *programRunner) publish(ctx context.Context, arm programArm, turns int) error {
	var left atomic.Int64
	left.Store(int64(turns))
	errs := make(chan error, publishers)
	var all sync.WaitGroup
	for range publishers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				n := strconv.FormatInt(p.next.Add(1), 36)
				_, err := p.client.Publish(ctx, &oneturn.Turn{
					TurnID: oneturn.TurnID{Chat: "chat-" + n[len(n)-1:], Turn: n}, Workflow: "Programs", Agent: arm.agent, Data: arm.data,
				})
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// run publishes turns and waits for their responses.
func (p *programRunner) run(ctx context.Context, arm programArm, turns int) error {
	want := p.ended.Load() + int64(turns)
	if err := p.publish(ctx, arm, turns); err != nil {
		return err
	}
	for p.ended.Load() < want {
		select {
		case <-p.more:
		case <-time.After(stuckAfter):
			return fmt.Errorf("%s: no response for %s", arm.name, stuckAfter)
		}
	}
	if failed := p.failed.Load(); failed > 0 {
		return fmt.Errorf("%s: %d turns failed", arm.name, failed)
	}
	return nil
}

func (p *programRunner) stop() (err error) {
	if p.cancel != nil {
		p.cancel()
		err = <-p.over
	}
	p.nc.Close()
	return err
}
