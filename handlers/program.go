package handlers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/retry"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// Step 7 of a turn whose tool is a program (a plan or an orchestration): runProgram runs its steps instead of one tool, and stores
// the result as the response of the turn. programRun is the host of the runner: it implements [program.Steps] on the journal.

// programRun is one run of a program: of the turn itself, or of a step whose tool is a program again.
type programRun struct {
	h        *Handlers
	turn     *turn    // whose steps these are
	own      *turn    // the call whose tool the program is: the turn itself, or a step of it
	run      *run.Run // of that call
	d        idempotency.Decision
	prefix   string // of the ids of its calls, "" or "outer#"
	runner   *program.Runner
	compiler *program.Compiler // with the manifests as they are when the run begins

	view     stateView
	panicked atomic.Bool     // the tool of a call has panicked
	traced   context.Context //nolint:containedctx // of the program: its span gets the states

	used *usage // by the turn
	// shown is set for a program that was literally in one that a person has approved.
	shown bool

	// inPlanned is set for a program inside of one that a planner has written: it is not planned again.
	inPlanned bool

	copies *retry.Copies // of a retry: the results that it keeps, of all its programs; nil otherwise

	summary, fallback string // of the outcome: for the responder, and the text if that fails
	plan              any    // that a planner has written, nil if none has or it is not read yet

	changes chan struct{} // with room for one: a call has begun to wait for people

	mu    sync.Mutex
	steps map[string]*step // that run, by call id
	asked time.Time        // when the journal was read for a cancel, or a call began, last

	// held takes the place of the lease for a turn that ends without a run of its program.
	held context.Context //nolint:containedctx // of the end of the turn

	cancelReason func() string // that the cancel of the turn names
	stoppedTools []string      // tools that ran when the program was ended from outside
}

// runProgram runs the program of a turn. A turn that was claimed before continues with what is stored of it.
func (h *Handlers) runProgram(ctx context.Context, t *turn, d idempotency.Decision) inbound.Disposition {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, _, endSpan := h.beginSpan(ctx, t, bindings.EffectProgram, d.Hold.Epoch)
	r := h.runs.Start(ctx, stop, &t.Turn, d, h.serverNow(t.m))
	defer h.runs.Remove(r)
	if h.cancelCopies.Has(t.Name, h.Now()) && h.cancelStored(t.m.Held, d.Hold) {
		stop(errCancelled)
	}
	h.Metrics.InFlight.Inc()
	clock := program.NewClock(ctx, t.Binding.Program.Limits.Timeout)
	defer clock.End()
	r.OnWait(clock.Pause)
	p := &programRun{h: h, turn: t, own: t, run: r, d: d, traced: ctx, compiler: h.compilerOf(t), steps: map[string]*step{}, changes: make(chan struct{}, 1)}
	t.programState() // so that steps find it
	p.cancelReason = h.reasonReader(t, d.Turn)
	p.used = usageOf(d.Turn)
	begun := time.Now()
	p.enterState(clock, stateInit, "", "")
	out, stopped := p.outcome(p.runStored(clock))
	if stopped == nil {
		p.leave(clock, out.Code == "", string(out.Code))
	}
	t.attempts, t.ran = 1, time.Since(begun)-clock.Paused()
	if stopped == nil {
		t.Hit(failpoint.AfterSteps)
		out, stopped = p.respond(clock, out)
	}
	spanned := out
	spanned.Duration, spanned.Stopped = t.ran, stopped
	endSpan(spanned)
	h.Metrics.InFlight.Dec()
	var hostErr error
	if d.Hold, hostErr = r.Close(); hostErr != nil {
		return h.endStopped(t, d, hostErr)
	}
	t.Hit(failpoint.AfterTool)
	if stopped == nil && p.nothingOpen(out) {
		t.closes = false
	}
	t.programState().withoutEnd = p.withoutEnd()
	if stopped != nil {
		t.programState().cancelled = p.cancelledText()
	}
	return h.endProgram(t, d, out, stopped)
}

// withoutEnd returns the keys of the calls of the program that have no end in its result.
func (p *programRun) withoutEnd() (keys []subjects.Key) {
	if p.runner == nil {
		return nil
	}
	for _, call := range p.runner.Program.Calls() {
		if _, ended := p.runner.Ends[call.ID]; !ended {
			keys = append(keys, p.keyOf(call))
		}
	}
	return keys
}

// nothingOpen reports whether it is certain that each step has a response, so that the turn is not read for steps without one before
// it ends: no other worker has called any, and all have succeeded.
func (p *programRun) nothingOpen(out engine.Outcome) bool {
	if p.d.Turn != nil || p.runner == nil || !out.Success || isPrompt(p.own.args) || p.compiler.ResponderBinding() != nil {
		return false
	}
	for _, call := range p.runner.Program.Calls() { // one that lost a race may have begun and have no end, also in a nested program
		if b := p.compiler.Tools.Binding(call.Tool); b == nil || b.Program != nil || !p.runner.Ends[call.ID].Success {
			return false
		}
	}
	return true
}

// runStored stores the program, unless it is stored, and runs it.
func (p *programRun) runStored(ctx context.Context) error {
	stored, err := p.stored(ctx)
	if err != nil {
		return err
	}
	p.runner = p.newRunner(stored)
	if p.own == p.turn {
		p.used.setLimit(stored.Limits)
	}
	p.enterState(ctx, stateValidated, "planner_finished", "")
	if p.runner.Ends, err = p.endsBefore(stored); err != nil {
		return err
	}
	if err := p.approve(ctx, stored); err != nil {
		return err
	}
	if err := p.runner.Run(ctx); err != nil {
		return err
	}
	return p.closeRaces()
}

func (p *programRun) newRunner(stored *flow.Program) *program.Runner {
	return &program.Runner{Program: stored, Tools: p.compiler.Tools, Steps: p, Changed: p.changes, Timing: p.h.Timing}
}

// depth is 1 for the program of the turn, and one more for each program around it.
func (p *programRun) depth() int { return p.own.Depth + 1 }

// lease is the context of writes under the lease of the turn.
func (p *programRun) lease() context.Context {
	if p.held != nil {
		return p.held
	}
	return p.turn.m.Held
}

// endsBefore returns how the calls of the program have ended that have a response.
func (p *programRun) endsBefore(stored *flow.Program) (map[string]program.End, error) {
	ends := map[string]program.End{}
	for _, call := range stored.Calls() {
		if copied := p.copies.Call(p.prefix + call.ID); copied != nil {
			ends[call.ID] = copiedEnd(copied)
			continue
		}
		c := p.d.Turn.CallOf(p.keyOf(call))
		if c == nil || c.Response == nil {
			continue
		}
		end, err := p.endBefore(call, c)
		if err != nil {
			return nil, err
		}
		ends[call.ID] = end
	}
	return ends, nil
}

// endBefore returns how a call has ended that this run has not entered. Its context changes are merged, and its questions are closed.
func (p *programRun) endBefore(call *flow.Call, c *idempotency.Call) (program.End, error) {
	end, err := p.endOf(c.Called, c.Response)
	if err != nil {
		return program.End{}, err
	}
	if err := p.h.mergeMissing(p.lease(), p.turn.m.tools, p.turn.m, c.Response); err != nil {
		return program.End{}, err
	}
	for _, key := range []subjects.Key{c.Key, p.approvalIn(call)} {
		if err := p.closeQuestions(key, false, c.Response.Seq); err != nil {
			return program.End{}, err
		}
	}
	return end, nil
}

// closeQuestions closes the questions of a call that has ended, so that frontends do not wait for their answers. Asked is set if this
// run of the call has asked; since is the sequence of its response.
func (p *programRun) closeQuestions(call subjects.Key, asked bool, since uint64) error {
	open := func(q idempotency.QuestionState) bool { return q.Ack == nil }
	if !asked && !slices.ContainsFunc(p.d.Turn.CallOf(call).Questions(), open) {
		return nil
	}
	hold := p.run.Hold()
	return p.h.Journal.CloseQuestions(p.lease(), hold.ForStep(call.Call, ""), since, p.d.Turn, p.h.acks(p.turn.m, nil, ""))
}

// MayStart implements [program.Steps].
func (p *programRun) MayStart(context.Context) error {
	switch {
	case p.run.Draining():
		return ErrDraining
	case !p.turn.m.Fresh():
		return errNotFresh
	}
	p.mu.Lock()
	long := !p.asked.IsZero() && time.Since(p.asked) > longRun
	p.asked = time.Now()
	p.mu.Unlock()
	if !long {
		return nil
	}
	cancelled, err := p.h.Journal.Cancelled(p.lease(), p.run.Hold())
	if err == nil && cancelled {
		err = errCancelled
	}
	return err
}

// errNotFresh stops a program whose message may have been redelivered to another worker: it calls no further step.
var errNotFresh = errors.New("the message was not kept in progress: another worker may have it")

// Ended implements [program.Steps].
func (p *programRun) Ended(calls []*flow.Call, since uint64) (map[string]program.End, error) {
	stored, err := p.read(calls, since)
	if err != nil {
		return nil, err
	}
	ends := map[string]program.End{}
	for i, step := range stored {
		if step == nil || step.Response == nil {
			continue
		}
		if ends[calls[i].ID], err = p.endOf(step.Called, step.Response); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// read reads calls from the leader. The read shows at least the record with a sequence.
func (p *programRun) read(calls []*flow.Call, since uint64) ([]*idempotency.Call, error) {
	keys := make([]subjects.Key, 0, len(calls))
	for _, call := range calls {
		keys = append(keys, p.keyOf(call))
	}
	return p.h.Journal.ReadSteps(p.lease(), p.run.Hold(), since, p.d.Turn, keys...)
}

// Release implements [program.Steps].
func (p *programRun) Release(call *flow.Call) {
	p.mu.Lock()
	s := p.steps[call.ID]
	delete(p.steps, call.ID)
	p.mu.Unlock()
	if s != nil {
		p.run.EndStep(s.run)
	}
}

// Rest implements [program.Steps].
func (p *programRun) Rest(waiting []*flow.Call) {
	p.mu.Lock()
	var wait, work []*run.Run
	for id, s := range p.steps {
		if slices.ContainsFunc(waiting, func(c *flow.Call) bool { return c.ID == id }) {
			wait = append(wait, s.run)
		} else {
			work = append(work, s.run)
		}
	}
	p.mu.Unlock()
	if p.view.state == stateDispatching {
		p.enterState(p.traced, stateAwaiting, "", p.view.step)
	}
	p.run.Rest(wait, work)
}

// Work implements [program.Steps].
func (p *programRun) Work() { p.run.Work() }

// Waits implements [program.Steps].
func (p *programRun) Waits(call *flow.Call) bool {
	p.mu.Lock()
	s := p.steps[call.ID]
	p.mu.Unlock()
	return s != nil && s.run.Waits()
}

// changed has the runner read again which of its calls wait.
func (p *programRun) changed() {
	select {
	case p.changes <- struct{}{}:
	default:
	}
}

// compiler compiles the programs of a call whose tool runs programs, and finds the tools of their steps.
func (h *Handlers) compiler(t *turn) *program.Compiler {
	return h.catalogOf(h.Bindings()).Compiler(t.Binding, t.Agent, t.Depth+1)
}

// catalogOf returns the catalog of a set. The one of the newest set is kept.
func (h *Handlers) catalogOf(set *bindings.Set) *program.Catalog {
	known := h.catalog.Load()
	if known == nil || known.Set() != set {
		known = program.NewCatalog(set, h.describe)
		h.catalog.Store(known)
	}
	return known
}

// describe returns what a tool has reported of itself. No tool is asked.
func (h *Handlers) describe(b *bindings.Binding) (tools.Description, bool) {
	tool, err := h.Tool(b)
	if err != nil {
		return tools.Description{}, false
	}
	if describer, ok := tool.(tools.Describer); ok {
		return describer.Known()
	}
	return tools.Description{}, false
}
