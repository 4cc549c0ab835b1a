package handlers

import (
	"context"
	"log/slog"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// The states of a program, as tracers get them: a view of what is decided elsewhere.

// The states.
const (
	stateInit        = "plan_init"
	statePlanning    = "planner_active"
	stateValidated   = "plan_validated"
	stateDispatching = "dispatching_step"
	stateAwaiting    = "awaiting_results"
	stateMerging     = "merging_results"
	stateCompleted   = "completed"
	stateFailed      = "failed"
)

// stateView is the state of a program that was reported last.
type stateView struct {
	state string
	step  string // id of the step that runs
	group bool
}

// enterState reports that the program of the turn enters a state because of an event; step is the step that it concerns, if any.
func (p *programRun) enterState(ctx context.Context, state, event, step string) {
	if p.own != p.turn || p.view.state == state && state != stateDispatching {
		return
	}
	p.view.state = state
	attrs := []slog.Attr{slog.String("state", state)}
	if event != "" {
		attrs = append(attrs, slog.String("event", event))
	}
	if step != "" {
		attrs = append(attrs, slog.String("step", step))
	}
	p.h.Engine.Emit(ctx, "program.state", attrs...)
}

// enterStep reports that a call begins, if it is the first one of its step.
func (p *programRun) enterStep(ctx context.Context, call *flow.Call) {
	step := p.runner.Program.StepOf(call.ID)
	if step == nil || step.ID == p.view.step {
		return
	}
	p.leaveStep(ctx)
	p.view.step, p.view.group = step.ID, step.Group
	p.enterState(ctx, stateDispatching, "", step.ID)
}

// leaveStep reports that the results of the step that ran are there.
func (p *programRun) leaveStep(ctx context.Context) {
	if p.view.step == "" {
		return
	}
	event := "step_succeeded"
	if p.view.group {
		event = "parallel_complete"
	}
	p.enterState(ctx, stateAwaiting, "", p.view.step)
	p.enterState(ctx, stateMerging, event, p.view.step)
}

// leave reports how the program has ended.
func (p *programRun) leave(ctx context.Context, success bool, code string) {
	if success {
		p.leaveStep(ctx)
		p.enterState(ctx, stateCompleted, "", "")
		return
	}
	event := "step_failed"
	switch {
	case code == string(events.CodeTimeout):
		event = code
	case p.panicked.Load():
		event = "panic"
	case p.view.step == "":
		event = "validation_failed"
	}
	p.enterState(ctx, stateFailed, event, p.view.step)
}
