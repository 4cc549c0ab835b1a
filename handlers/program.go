package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/retry"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// Step 7 of a turn whose tool is a program (a plan or an orchestration): runProgram runs its steps instead of one tool, and stores
// the result as the response of the turn. The steps are in program_step.go, how a program ends in program_end.go.

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

	copies *retry.Copies // of a retry: the ends that it keeps, of all its programs; nil otherwise

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
	p := &programRun{h: h, turn: t, own: t, run: r, d: d, traced: ctx, compiler: h.compiler(t), steps: map[string]*step{}, changes: make(chan struct{}, 1)}
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
	return h.endProgram(t, d, out, stopped)
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
	return p.runner.Run(ctx)
}

func (p *programRun) newRunner(stored *flow.Program) *program.Runner {
	return &program.Runner{Program: stored, Tools: p.compiler.Tools, Steps: p, Changed: p.changes, Timing: p.h.Timing}
}

// stored returns the program as it is stored: what an earlier owner has stored, else the one that is compiled from the arguments of
// the call. A program without steps is not stored.
func (p *programRun) stored(ctx context.Context) (*flow.Program, error) {
	var record *idempotency.Record
	if before := p.d.Turn.CallOf(p.own.Key); before != nil {
		record = before.Program
	}
	if record == nil {
		compiled, err := p.compiled(ctx)
		if err != nil || len(compiled.Steps) == 0 {
			return compiled, err
		}
		event, err := p.startedEvent(compiled)
		if err != nil {
			return nil, err
		}
		stored, err := p.h.Journal.StoreProgram(p.lease(), p.run.Hold(), event)
		if err != nil {
			return nil, err
		}
		p.h.addStored(p.own.Key.App, len(event))
		p.turn.newest.note(stored.Seq)
		p.own.Hit(failpoint.AfterProgram)
		record = &stored
	}
	return p.decodeStarted(record)
}

// compiled returns the program of the arguments of the call; of a retry, as the turn that it retries has run it.
func (p *programRun) compiled(ctx context.Context) (*flow.Program, error) {
	if before, err := p.ranBefore(); before != nil || err != nil {
		return before, err
	}
	compiled, ask, err := p.compiler.Compile(p.own.args)
	switch {
	case ask != nil && p.inPlanned:
		return nil, planner.Recursion(p.compiler.Kind())
	case ask != nil:
		return p.planned(ctx, ask)
	}
	return compiled, err
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
		end, err := p.endOf(c.Called, c.Response)
		if err != nil {
			return nil, err
		}
		if err := p.h.mergeMissing(p.lease(), p.turn.m.tools, p.turn.m, c.Response); err != nil {
			return nil, err
		}
		if err := p.closeQuestions(c.Key, false, c.Response.Seq); err != nil {
			return nil, err
		}
		ends[call.ID] = end
	}
	return ends, nil
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
	keys := make([]subjects.Key, 0, len(calls))
	for _, call := range calls {
		keys = append(keys, p.keyOf(call))
	}
	stored, err := p.h.Journal.ReadSteps(p.lease(), p.run.Hold(), since, p.d.Turn, keys...)
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
	return program.NewCompiler(h.Bindings(), t.Binding, t.Agent, t.Depth+1, h.describe)
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

// prepareProgram compiles the program of a turn before it is claimed, and rejects it if it is not valid: steps 4 and 5 of a turn.
func (h *Handlers) prepareProgram(t *turn) {
	t.args, _ = t.Data.(map[string]any)
	t.argsJSON = t.data
	if _, _, err := h.compiler(t).Compile(t.Data); err != nil {
		t.reject = h.rejectUnrun(t, err)
	}
	t.closes = t.reject == nil // else no step is called
}

// rejectUnrun rejects a program that cannot run.
func (h *Handlers) rejectUnrun(t *turn, err error) *rejection {
	var r *rejection
	if refused, ok := errors.AsType[*flow.Refused](err); ok {
		r = rejectProgram(t, refused, err)
		h.warnRefused(t, refused)
	} else {
		r = reject(cmp.Or(events.CodeOf(err), events.CodeToolError), err)
		payload := notRun(t, r.code)
		payload["message"], r.payload = r.content, payload
	}
	r.refusal = refusalOf(err)
	return r
}

// notRun is the payload of a program that is not run: the one of a program that has ended, without steps.
func notRun(t *turn, code events.Code) map[string]any {
	payload := map[string]any{"status": string(flow.StatusInvalid), "code": string(code)}
	if t.Binding.Program.Kind == bindings.KindPlan {
		payload["results"], payload["skipped"], payload["halted"] = []any{}, []any{}, false
	} else {
		payload["steps"], payload["success"] = []any{}, false
	}
	return payload
}

// rejectProgram rejects an invalid program, with what is wrong with it and feedback for the model.
func rejectProgram(t *turn, refused *flow.Refused, err error) *rejection {
	code := events.CodeValidationFailed
	if events.CodeOf(err) == events.CodeGuardrail { // the program itself is valid: it is too deep where it was called from
		code = events.CodeGuardrail
	}
	payload := notRun(t, code)
	payload["errors"], payload["feedback"] = events.JSONOf(refused.Problems), refused.Feedback()
	if refused.Reason != "" {
		payload["reason"] = refused.Reason
	}
	whose := "The program of agent " + t.Agent
	if refused.Reason == flow.ReasonPlannerInvalid || refused.Reason == flow.ReasonPlannerRecursion {
		whose = fmt.Sprintf("The program that planner %s wrote for agent %s", t.Binding.Program.Planner, t.Agent)
	}
	return &rejection{code: code, payload: payload, content: events.Clip(asSentence(whose + " is not run: " + refused.Error()))}
}

// startedEvent is the event of the record that has the program.
func (p *programRun) startedEvent(compiled *flow.Program) ([]byte, error) {
	t := p.own
	data, err := program.Data(compiled)
	if err != nil {
		return nil, err
	}
	e := &events.PlanStarted{
		Kind: events.KindPlanStarted, ID: t.CallID, AppID: t.App, ChatID: t.Chat, RunID: t.Run, Turn: t.TurnID.Turn, TurnSequence: t.TurnSequence,
		Agent: t.Agent, ToolName: t.Binding.Tool, ToolCallID: t.CallID, CallID: t.CallID, Corr: t.CallID, WorkflowName: t.Workflow,
		Payload: program.Payload(compiled),
	}
	if _, err := events.Decode(data); err != nil { // as the next owner does
		return nil, unstorableProgram(err)
	}
	stored, err := p.h.shrink(p.lease(), p.turn.m.tools, t.Key, events.RecordProgram, data, data)
	if err != nil {
		return nil, err
	}
	if e.ProgramData = events.JSONOf(stored); len(data) != len(e.ProgramData) { // in a blob: what is drawn has to fit as well
		omitArguments(e)
	}
	if err := p.storeCopies(e); err != nil {
		return nil, err
	}
	event, err := events.Encode(events.KindPlanStarted, e, p.h.Now())
	if err == nil {
		return event, nil
	}
	omitArguments(e) // the program and what is drawn of it may have too many values together
	if event, err = events.Encode(events.KindPlanStarted, e, p.h.Now()); err != nil {
		return nil, unstorableProgram(err)
	}
	return event, nil
}

// omitArguments leaves out what is only for those who draw the program.
func omitArguments(e *events.PlanStarted) {
	for i := range e.Payload.Steps {
		e.Payload.Steps[i].Arguments = map[string]any{}
	}
}

// unstorableProgram is why a program ends that is valid and that no record can hold.
func unstorableProgram(err error) error {
	what := err.Error()
	if syntax, ok := errors.AsType[*events.SyntaxError](err); ok {
		what = syntax.Reason
	}
	return &events.Error{Code: events.CodeTooLarge, Op: "program", Msg: "the program cannot be stored: " + what, Err: err}
}

// decodeStarted returns the program of a record.
func (p *programRun) decodeStarted(record *idempotency.Record) (*flow.Program, error) {
	e, err := events.ReadPlanStarted(record.Data)
	if err != nil {
		return nil, damaged(record.Key)
	}
	tree, err := events.Decode(e.ProgramData)
	if err != nil {
		return nil, damaged(record.Key)
	}
	reading, done := p.reading()
	defer done()
	object, err := p.h.Blobs.Object(reading, p.own.Key, events.RecordProgram, tree)
	if err != nil {
		return nil, damagedBy(err)
	}
	stored, err := flow.DecodeProgram(events.JSONOf(object))
	if err != nil {
		return nil, damaged(record.Key)
	}
	return stored, p.readCopies(reading, e, record.Key)
}
