package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/retry"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/subjects"
)

// A retry is a new turn that runs the program of an earlier one again (docs/journal.md#retries). What the earlier turn has
// finished is copied into the record that has the program, so that one create decides which calls never run again, and nothing is
// read from the earlier turn after that. Before that record is stored, no step is called.

// retryPlan is what a retry runs.
type retryPlan struct {
	*program.Retry

	turn *idempotency.Turn // that it retries
	past *retry.Past
}

// Before a retry is claimed, the turn that it retries is read with the results of its calls. These take memory, and the message that
// causes it is small, so that each process reads a limited number of turns at the same time, and each tenant has a share of them.

// retryReads is how many turns to retry a process reads at the same time. Each has at most maxCarried bytes of arguments and results.
const retryReads = 8

// retryDelay is the first delay of a retry that has to wait for a place.
const retryDelay = 100 * time.Millisecond

// errManyRetries is why the message of a retry that cannot wait becomes a dead letter.
var errManyRetries = errors.New("the tenant has as many retries that are read, and as many waiting messages, as allowed: publish it again later (turnctl dead redrive)")

// requeueRetry takes a place for a turn that is a retry until [Handlers.freeRetry], or requeues its message. If that is not possible, it
// becomes a dead letter. A turn that a worker has claimed is continued: it waits for a place.
func (h *Handlers) requeueRetry(ctx context.Context, t *turn) (inbound.Disposition, bool) {
	if t.ResumeOf == "" || h.takeRetry(t) {
		return inbound.Disposition{}, false
	}
	if d, requeued := h.requeueUnclaimed(t, h.claimedBefore, retryDelay, errManyRetries); requeued {
		return d, true
	}
	return inbound.Left(), h.awaitRetry(ctx, t) != nil
}

// takeRetry takes a place for a retry, and reports whether there is one.
func (h *Handlers) takeRetry(t *turn) bool {
	t.reads = t.reads || h.retries.Take(t.Key.App)
	return t.reads
}

// awaitRetry waits for a place for a retry that is claimed. Its message is not requeued meanwhile, since each takeover counts, and the
// wait is short: a place is held while a turn is read.
func (h *Handlers) awaitRetry(ctx context.Context, t *turn) error {
	for !h.takeRetry(t) {
		if err := pause.For(ctx, retryDelay); err != nil {
			return err
		}
		if !t.m.Fresh() {
			return errNotFresh
		}
	}
	return nil
}

// freeRetry releases the place of a retry.
func (h *Handlers) freeRetry(t *turn) {
	if t.reads {
		t.reads = false
		h.retries.Free(t.Key.App)
	}
}

// prepareRetry is prepare for a retry: the turn that it retries has the binding and the arguments, and must allow it.
func (h *Handlers) prepareRetry(t *turn) (wait time.Duration) {
	err := h.planRetry(t, &wait)
	_, refused := errors.AsType[*flow.Refused](err)
	coded, isCoded := errors.AsType[*events.Error](err)
	switch {
	case err == nil:
	case !refused && !isCoded:
		t.undecided = err
	case t.Binding != nil && t.Binding.Program != nil:
		t.reject = h.rejectUnrun(t, err)
	default:
		t.reject = reject(coded.Code, coded)
	}
	return wait
}

// planRetry reads the turn to retry and decides what runs. The error is an [events.Error] or a [flow.Refused] if the retry is refused;
// after any other it is not known whether it may run.
func (h *Handlers) planRetry(t *turn, wait *time.Duration) error {
	plan, err := h.readPast(t)
	if err != nil {
		return err
	}
	if err := plan.past.Check(t.ResumeOf); err != nil {
		return err
	}
	claim := plan.past.Claim
	if claim.WorkflowName != t.Workflow {
		return &events.Error{Code: events.CodeBadArgs, Op: "retry", Msg: fmt.Sprintf("turn %q is of workflow %q, not of %q: name the workflow of the turn to retry", t.ResumeOf, claim.WorkflowName, t.Workflow)}
	}
	t.Agent, t.UserID, t.TurnSequence, t.Depth = claim.Agent, claim.UserID, claim.TurnSequence, max(t.Depth, claim.Depth)
	if t.Binding, err = program.RetryBinding(h.Bindings(), claim); err != nil {
		if events.CodeOf(err) == events.CodeNoBinding {
			*wait = h.unknownWorkflowDelay(t)
		}
		return err
	}
	if err := h.findTool(t); err != nil {
		return err
	}
	if err := h.planCalls(t, plan); err != nil {
		return err
	}
	t.retry = &retryPlan{Retry: plan.Retry} // what was read is not kept: its place is free again once the retry is claimed
	return nil
}

// readPast reads the turn to retry from the journal.
func (h *Handlers) readPast(t *turn) (*retryPlan, error) {
	held, err := h.Journal.Load(t.m.Held, subjects.TurnKey(t.App, t.Chat, t.Run, t.ResumeOf))
	if err != nil {
		return nil, fmt.Errorf("read the turn to retry: %w", err)
	}
	past, err := retry.FromTurn(held, func(key subjects.Key, kind string, stored any) (any, error) {
		reading, done := store.Context(t.m.Held, t.m.tools)
		defer done()
		value, err := h.Blobs.Value(reading, key, kind, stored)
		if errors.Is(err, store.ErrBlobGone) {
			return nil, &events.Error{Code: events.CodeStateCorrupt, Op: "retry", Msg: "a stored value of the turn to retry is gone or damaged", Err: err}
		}
		return value, err
	})
	return &retryPlan{turn: held, past: past}, err
}

// planCalls takes over the arguments of the turn to retry, and decides which of its calls run.
func (h *Handlers) planCalls(t *turn, plan *retryPlan) error {
	args, err := plan.past.Arguments()
	if err != nil {
		return err
	}
	if t.args = args; t.args == nil {
		return &events.Error{Code: events.CodeStateCorrupt, Op: "retry", Msg: "the arguments of the turn to retry are gone"}
	}
	if t.argsJSON, err = events.Canonicalize(t.args, 0); err != nil {
		return &events.Error{Code: events.CodeTooLarge, Op: "retry", Msg: "the arguments of the turn to retry cannot be stored again", Err: err}
	}
	if plan.Retry, err = h.compiler(t).Retry(plan.past, t.args, t.Rerun); err != nil {
		return err
	}
	return h.mergeSteps(t, plan)
}

// mergeSteps merges the context changes of the calls whose ends are kept, unless they are merged.
func (h *Handlers) mergeSteps(t *turn, plan *retryPlan) error {
	for _, step := range plan.turn.Steps() {
		if err := h.mergeMissing(t.m.Held, t.m.tools, t.m, step.Response); err != nil {
			return err
		}
	}
	return nil
}

// ranBefore returns the program that a call of a retry has run in the turn that is retried, nil if there is none.
func (p *programRun) ranBefore(ctx context.Context) (*flow.Program, error) {
	if p.own != p.turn {
		nested, err := p.copies.Program(p.prefix)
		if err != nil {
			return nil, &events.Error{Code: events.CodeStateCorrupt, Op: "retry", Msg: "a program of the turn to retry cannot be read", Err: err}
		}
		return nested, nil
	}
	if p.turn.ResumeOf == "" {
		return nil, nil //nolint:nilnil // it is not a retry
	}
	if p.turn.retry == nil { // the worker that has claimed it is gone
		if err := p.h.awaitRetry(ctx, p.turn); err != nil {
			return nil, err
		}
		defer p.h.freeRetry(p.turn)
		args, argsJSON, binding := p.turn.args, p.turn.argsJSON, p.turn.Binding
		var wait time.Duration
		err := p.h.planRetry(p.turn, &wait)
		p.turn.args, p.turn.argsJSON, p.turn.Binding, p.turn.reject = args, argsJSON, binding, nil
		if err != nil {
			return nil, err
		}
	}
	p.copies = p.turn.retry.Copies
	return p.turn.retry.Program, nil
}

// storeCopies adds to the event of a program what a retry keeps of it: to the one of the turn, for all its programs.
func (p *programRun) storeCopies(e *events.PlanStarted) error {
	if p.copies == nil {
		return nil
	}
	p.copies.Mark(&e.Payload, p.prefix)
	if p.own != p.turn {
		return nil
	}
	data, err := p.copies.Encode()
	if err != nil {
		return err
	}
	stored, err := p.h.shrink(p.lease(), p.turn.m.tools, p.turn.Key, retry.RecordCopies, data, data)
	if err != nil {
		return err
	}
	e.CopiedData = events.JSONOf(stored)
	return nil
}

// readCopies reads what a retry keeps, as the record of the program of the turn has it.
func (p *programRun) readCopies(ctx context.Context, e *events.PlanStarted, record string) error {
	if e.CopiedData == nil || p.own != p.turn {
		return nil
	}
	tree, err := events.Decode(e.CopiedData)
	if err != nil {
		return damaged(record)
	}
	text, err := p.h.Blobs.Value(ctx, p.turn.Key, retry.RecordCopies, tree)
	if err != nil {
		return damagedBy(err)
	}
	if p.copies, err = retry.Decode(text); err != nil {
		return damaged(record)
	}
	if p.used != nil { // the program runs
		p.used.keep(p.copies)
	}
	return nil
}

// keep counts what a retry keeps, once per run: the response of the turn has it all.
func (u *usage) keep(c *retry.Copies) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls += len(c.Calls)
	for i := range c.Calls {
		u.bytes += len(events.JSONOf(c.Calls[i].Arguments)) + len(events.JSONOf(c.Calls[i].Output))
	}
}

// keepsAll reports whether a retry keeps the results of all calls of a program, so that nothing of it runs.
func (p *programRun) keepsAll(of *flow.Program) bool {
	return !slices.ContainsFunc(of.Calls(), func(c *flow.Call) bool { return p.copies.Call(p.prefix+c.ID) == nil })
}

// copiedEnd is the end of a call as a retry keeps it.
func copiedEnd(c *retry.Copy) program.End {
	return program.End{
		Seq: c.Seq, Success: c.Success, Code: string(c.Code),
		Outcome: flow.Outcome{
			Arguments: c.Arguments, Output: c.Output, Message: c.Content, Attempts: c.Attempts,
			Duration: time.Duration(c.DurationMS) * time.Millisecond, CopiedFrom: c.From,
		},
	}
}

// execID returns the tool_call_id of a call of the program: of the turn in which it has run.
func (p *programRun) execID(call string) string {
	if copied := p.copies.Call(p.prefix + call); copied != nil {
		return copied.From
	}
	return events.StepID(p.turn.CallID, p.prefix+call)
}
