package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// One step of a program: Run stores its tool_call, enters its tool and stores its response (docs/journal.md#steps-of-a-program). A step that an
// earlier owner has called is entered again only if the effect of its tool allows it, with the arguments that are stored.

// step is a call of a program on its way through Run.
type step struct {
	*turn // with the key, the call id and the tool of the step

	call     *flow.Call
	run      *run.Run
	unusable error // why its tool cannot be called, nil if it can
	internal bool  // see newInternalCall
	asked    int   // of an agent that plans or responds: how often it was entered

	// For spans and metrics.
	trace  string         // traceparent of its span, else of the turn
	out    engine.Outcome // of its tool: whether it was cached, how long it waited
	stored bool           // this worker has stored its response
}

// keyOf returns the key of the records of a call.
func (p *programRun) keyOf(call *flow.Call) subjects.Key {
	return p.turn.Key.WithCall(subjects.StepCall(p.prefix + call.ID))
}

// newStep returns a call of the program. Its binding is nil if this worker has no such tool (any more).
func (p *programRun) newStep(call *flow.Call) *step {
	t, key := p.turn, p.keyOf(call)
	s := &step{call: call, turn: &turn{m: t.m, claimed: t.claimed, Turn: run.Turn{
		StructuredOutputReady: t.StructuredOutputReady, Message: t.Message, Key: key, Name: key.String(),
		CallID: events.StepID(t.CallID, p.prefix+call.ID), Program: t.CallID, Step: p.prefix + call.ID, Depth: p.depth(),
	}}}
	s.Message.Slot = nil // it is the turn's
	if bound := p.compiler.Tools.Binding(call.Tool); bound != nil {
		b := *bound
		b.Timeout = p.timeout(&b, call)
		s.Binding = &b
	}
	return s
}

// timeout returns how long the tool of a call may take: as the call states, else as the tool does, at most as long as the request for
// the program allows.
func (p *programRun) timeout(b *bindings.Binding, call *flow.Call) time.Duration {
	if call.Timeout > 0 {
		return call.Timeout
	}
	usual := p.own.Binding.Program.Limits.StepTimeout
	limit := cmp.Or(b.Timeout, usual)
	if p.runner != nil && p.runner.Program.Limits.StepTimeout > 0 && p.runner.Program.Limits.StepTimeout < usual {
		limit = min(limit, p.runner.Program.Limits.StepTimeout)
	}
	return limit
}

// Begin implements [program.Steps].
func (p *programRun) Begin(ctx context.Context, stop context.CancelCauseFunc, call *flow.Call) {
	s := p.newStep(call)
	if s.Binding == nil {
		s.unusable = unknownTool(call.Tool)
		s.Binding = &bindings.Binding{Workflow: p.turn.Workflow, Agent: p.turn.Agent, Tool: call.Tool, Effect: bindings.EffectUnsafe}
		s.Effect = bindings.EffectUnsafe
	} else if err := p.h.findTool(s.turn); err != nil {
		s.unusable = err
	}
	s.run = p.run.Step(ctx, stop, &s.Turn, string(s.Effect), p.changed)
	p.mu.Lock()
	p.steps[call.ID] = s
	p.mu.Unlock()
	p.enterStep(ctx, call)
}

// Run implements [program.Steps].
func (p *programRun) Run(ctx context.Context, call *flow.Call, args map[string]any, refused error) (program.End, error) {
	p.mu.Lock()
	s := p.steps[call.ID]
	p.mu.Unlock()
	s.args = args
	if s.unusable != nil {
		refused = s.unusable
	}
	end, err := p.enter(ctx, s, refused)
	if _, over := s.run.Close(); over != nil && err == nil && !errors.Is(over, errCancelled) {
		return program.End{}, over
	}
	if err == nil {
		err = p.closeQuestions(s.Key, s.Asked, end.Seq)
	}
	if err == nil && !end.Success { // a program that was not approved
		err = p.closeQuestions(p.approvalIn(call), s.Binding.Program != nil && s.Binding.Program.Approve, end.Seq)
	}
	return end, err
}

// approvalIn returns the key of the question that precedes the program of a call, if its tool runs one that is to be approved.
func (p *programRun) approvalIn(call *flow.Call) subjects.Key {
	return p.turn.Key.WithCall(subjects.CallOf(p.prefix + call.ID + "#" + events.StepApprove))
}

func unknownTool(name string) error {
	return &events.Error{Code: events.CodeUnknownTool, Op: "program", Msg: fmt.Sprintf("tool %.80q is not in the workflow (any more)", name)}
}

// enter stores the tool_call of a step, enters its tool, and returns how it has ended.
func (p *programRun) enter(ctx context.Context, s *step, refused error) (end program.End, err error) {
	before := p.d.Turn.CallOf(s.Key)
	if before != nil && p.d.Turn.Waits(before) {
		if err := s.run.AwaitDecision(ctx); err != nil {
			stopped, ends := stopOf(err)
			if !ends {
				return program.End{}, err
			}
			refused = &events.Error{Code: stopped.Code, Msg: p.stoppedText(s, stopped, false)} // it does not wait any longer
		}
	}
	ctx, ended := p.observe(ctx, s)
	defer func() { ended(&end, err) }()
	if refused == nil && s.Binding.Program == nil {
		object, changed := s.Binding.Args(s.args, s.StructuredOutputReady)
		if changed {
			s.args = object
		}
	}
	if before == nil || before.Called == nil {
		refused = p.used.admit(s, refused)
	}
	entry, err := p.storeCall(s)
	if refused == nil && run.Unstorable(err) {
		refused, s.args = tooLarge("arguments", err), nil
		entry, err = p.storeCall(s)
	}
	switch {
	case err != nil:
		return program.End{}, err
	case entry.Response != nil:
		s.noteStored(entry.Response)
		return p.endOf(entry.Called, entry.Response)
	case entry.Called != nil:
		if s.args, err = p.argsOf(entry.Called); err != nil {
			return program.End{}, err
		}
	}
	s.run.Entered(entry.Effect)
	s.Hit(failpoint.AfterStepCall)
	if refused != nil {
		return p.end(s, engine.Failure(s.call.Tool, refused))
	}
	if s.Binding.Program != nil {
		return p.nested(ctx, s)
	}
	return p.invoke(ctx, s)
}

// storeCall stores the tool_call of a step, or returns what an earlier owner has stored of it.
func (p *programRun) storeCall(s *step) (entry idempotency.StepEntry, err error) {
	if s.args == nil {
		s.args, s.argsJSON = map[string]any{}, nil
	}
	if s.argsJSON == nil {
		if s.argsJSON, err = events.Canonicalize(s.args, 0); err != nil {
			return entry, err
		}
	}
	event, err := p.h.callEvent(p.turn.m.tools, s.turn, nil)
	if err != nil {
		return entry, err
	}
	entry, err = p.h.Journal.Enter(p.lease(), s.run.Hold(), idempotency.StepCall{
		Event: event, Digest: s.Binding.Digest, Known: p.d.Turn, Since: p.turn.program.newest.Load(),
		Interrupted: func(*idempotency.Record) ([]byte, error) {
			return p.h.endedStep(s.turn, events.CodeInterrupted, fmt.Sprintf(
				"The worker stopped, or lost the turn, while tool %s ran: its effect may or may not have happened, and it is not run again.", s.Binding.Tool), s.Binding.Tool)
		},
	})
	if err == nil && entry.Called == nil {
		p.h.addStored(s.Key.App, len(event))
	}
	p.turn.program.newest.note(entry.Seq)
	if entry.Response != nil {
		p.turn.program.newest.note(entry.Response.Seq)
	}
	return entry, err
}

// invoke enters the tool of a step.
func (p *programRun) invoke(ctx context.Context, s *step) (program.End, error) {
	call, err := p.h.toolCall(ctx, s.turn, s.run)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return p.stopped(s, engine.Outcome{Stopped: context.Cause(ctx)})
	case errors.Is(err, events.ErrStateCorrupt): // its context variables
		return p.end(s, engine.Failure(s.Binding.Tool, &events.Error{Code: events.CodeStateCorrupt, Msg: "the tool was not entered: " + reason(err), Err: err}))
	default:
		return program.End{}, err
	}
	invocation := s.run.Invocation(s.withTrace(call))
	invocation.Begun = true
	out := p.h.Engine.Do(ctx, invocation)
	s.Hit(failpoint.AfterStep)
	run.Scrub(call.Secrets, &out)
	p.h.Metrics.Tool(s.Binding, &out)
	s.attempts, s.ran = attempts(out.Attempts), out.Duration
	s.out = engine.Outcome{Cached: out.Cached, Waited: out.Waited, Paused: out.Paused}
	if why := s.run.Reported(); why != nil {
		out.Stopped = why
	}
	if out.Stopped != nil {
		return p.stopped(s, out)
	}
	if out.Err != nil {
		p.h.logFailure(s.turn, out)
		if _, panicked := errors.AsType[*tools.PanicError](out.Err); panicked {
			p.panicked.Store(true)
		}
	}
	return p.end(s, out)
}

// endOf returns how a step has ended, as its records have it.
func (p *programRun) endOf(called, response *idempotency.Record) (program.End, error) {
	arguments, err := p.argsOf(called)
	if err != nil {
		return program.End{}, err
	}
	return p.endWith(arguments, response)
}

// endWith returns how a step with arguments has ended.
func (p *programRun) endWith(arguments map[string]any, response *idempotency.Record) (program.End, error) {
	r, endedAt, err := events.ReadEndedResponse(response.Data)
	key, ok := subjects.ParseKey(response.Key)
	if err != nil || !ok || response.Err != nil {
		return program.End{}, damaged(response.Key)
	}
	var output any
	if r.Code == "" { // else the payload describes the failure
		reading, done := p.reading()
		defer done()
		if output, err = p.h.Blobs.Value(reading, key.Key, events.KindToolResponse, r.Payload); err != nil {
			return program.End{}, damagedBy(err)
		}
	}
	return program.End{
		Seq: response.Seq, Success: r.Success, Code: string(r.FailureCode()),
		Outcome: flow.Outcome{
			Arguments: arguments, Output: output, Message: r.Content, Attempts: r.Attempts,
			Duration: time.Duration(r.DurationMS) * time.Millisecond, EndedAt: endedAt,
		},
	}, nil
}

// reading returns the context of reads outside of the journal. They do not end with the tool of a step: it may be stopped while its
// end, or the one of another step, is read.
func (p *programRun) reading() (context.Context, context.CancelFunc) {
	return store.Context(p.lease(), p.turn.m.tools)
}

// argsOf returns the arguments that the tool_call of a step has.
func (p *programRun) argsOf(called *idempotency.Record) (map[string]any, error) {
	if called == nil {
		return nil, nil //nolint:nilnil // it has expired
	}
	key, _ := subjects.ParseKey(called.Key)
	e, err := events.ReadCall(called.Data)
	if err != nil || called.Err != nil {
		return nil, damaged(called.Key)
	}
	reading, done := p.reading()
	defer done()
	args, err := p.h.Blobs.Object(reading, key.Key, events.KindToolCall, e.Payload.ToolArgs)
	if err != nil {
		return nil, damagedBy(err)
	}
	return args, nil
}

func damaged(key string) error {
	return &events.Error{Code: events.CodeStateCorrupt, Op: "program", Msg: fmt.Sprintf("record %.200q cannot be read", key)}
}

// damagedBy has the turn end as state_corrupt for a blob that is gone. After any other error it is not known what is stored.
func damagedBy(err error) error {
	if errors.Is(err, store.ErrBlobGone) {
		return &events.Error{Code: events.CodeStateCorrupt, Op: "program", Msg: "the stored output of a step is gone or damaged", Err: err}
	}
	return err
}

// nested runs a program that is the tool of a step, in the same turn and by the same journal.
func (p *programRun) nested(ctx context.Context, s *step) (program.End, error) {
	inner := &programRun{
		h: p.h, turn: p.turn, own: s.turn, run: s.run, d: p.d, prefix: p.prefix + s.call.ID + "#", compiler: p.h.compiler(s.turn), steps: map[string]*step{},
		changes: make(chan struct{}, 1), inPlanned: p.inPlanned || isPrompt(p.own.args), cancelReason: p.cancelReason, used: p.used, copies: p.copies,
	}
	_, literal := s.call.Arguments["plan"].(map[string]any)
	inner.shown = literal && (p.shown || p.own.Binding.Program.Approve)
	inner.compiler.Limits.Calls = min(inner.compiler.Limits.WithDefaults().Calls, max(1, p.used.left()))
	clock := program.NewClock(ctx, s.Binding.Timeout)
	defer clock.End()
	s.run.OnWait(clock.Pause)
	begun := time.Now()
	err := inner.runStored(clock)
	s.attempts, s.ran = 1, time.Since(begun)-clock.Paused()
	s.out.Paused = clock.Paused()
	out, stopped := inner.outcome(err)
	if stopped != nil {
		return program.End{}, stopped
	}
	if ctx.Err() != nil {
		p.noteStopped(inner.stoppedTools...)
	}
	return p.end(s, out)
}
