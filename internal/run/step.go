package run

import (
	"context"

	"github.com/oneturn/oneturn/idempotency"
)

// Runs of the steps of a program. The tool of the turn's own run is the runner of the program: it starts a run for each step, and
// rests when it has nothing to start. The turn waits for people, and is parked, when the runner rests and each step that runs waits.

// OnWait adds what is called when the turn begins to wait for people, and when that ends. It must not call the run.
func (r *Run) OnWait(f func(waits bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onWait = append(r.onWait, f)
}

// Draining reports whether the worker is about to stop.
func (r *Run) Draining() bool { return r.reg.draining.Load() }

// Step registers the run of a step of the turn, until [Run.EndStep]. Ctx is the context of its tool, stop ends it; t has the key and
// the tool of the step, and effect is the one under which it is entered. OnQuestion is called when the step begins to wait for
// people; it must not block and must not call the run.
func (r *Run) Step(ctx context.Context, stop context.CancelCauseFunc, t *Turn, effect string, onQuestion func()) *Run {
	step := &Run{
		shared: r.shared, reg: r.reg, cfg: r.cfg, t: t, tool: ctx, stop: stop, before: r.before, begun: r.begun, effect: effect, onQuestion: onQuestion,
	}
	r.mu.Lock()
	r.calls = append(r.calls, step)
	step.isBusy(true)
	r.mu.Unlock()
	r.reg.mu.Lock()
	defer r.reg.mu.Unlock()
	r.reg.runs[t.Name] = step
	return step
}

// EndStep removes the run of a step whose response the runner has got. The runner is busy.
func (r *Run) EndStep(step *Run) {
	r.reg.Remove(step)
	r.mu.Lock()
	defer r.mu.Unlock()
	step.isBusy(false)
	r.remove(step)
}

// Entered pins the effect under which the tool of the step is entered.
func (r *Run) Entered(effect string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.effect = effect
}

// Rest reports that the runner has nothing to start, as long as each of the steps in waiting waits for people and the others, in
// working, run or are about to end. It ends with [Run.Work]. A step whose tool is the runner of a nested program waits if each step of that does,
// and is as busy as these are: only one that was stopped is about to end whatever its steps do.
func (r *Run) Rest(waiting, working []*Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, step := range working {
		step.isBusy(!step.rests || step.stopped())
	}
	for _, step := range waiting {
		if step.questions.displayed > 0 {
			step.isBusy(false)
		}
	}
	r.rests, r.stepsWait = true, len(waiting) > 0 && len(working) == 0
	r.isBusy(r.stopped())
	if r.stepsWait && r.onQuestion != nil {
		r.onQuestion()
	}
}

// stopped reports whether the run is of a step that was stopped.
func (r *Run) stopped() bool { return r != r.root && r.tool.Err() != nil }

// Work reports that the runner is busy again.
func (r *Run) Work() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rests, r.stepsWait = false, false
	r.isBusy(true)
}

// Waits reports whether the call waits for people.
func (r *Run) Waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.questions.displayed > 0 || r.stepsWait
}

// Before returns the call as the journal held it when the owner of the turn began.
func (r *Run) Before() *idempotency.Call { return r.before.CallOf(r.t.Key) }

// AwaitDecision waits until one of the questions is decided that an earlier run of the step has asked, and which keep it parked: its
// tool is not entered before. The error is one of [tools.Host.Ask].
func (r *Run) AwaitDecision(ctx context.Context) error {
	questions := r.openBefore()
	for _, q := range questions {
		r.listen(q)
		r.opened(q)
	}
	defer func() {
		for _, q := range questions {
			r.closeQuestion(q, outcomeLeft)
		}
	}()
	refs := make([]idempotency.QuestionRef, len(questions))
	for i, q := range questions {
		refs[i] = idempotency.QuestionRef{Call: r.t.Key.Call, Token: q.token}
	}
	never := make(chan struct{})
	for pause := firstPoll; len(questions) > 0; pause = min(2*pause, maxPoll) {
		for _, q := range questions {
			r.markRead(q)
		}
		decided, err := r.cfg.Journal.Decided(r.leaseContext(), r.Hold(), refs...)
		switch {
		case err != nil:
			return r.classify(err)
		case decided:
			return nil
		}
		r.cfg.Timing.Wait(ctx, r.leaseContext(), questions[0].notify, never, pause)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case r.leaseContext().Err() != nil:
			return r.classify(context.Cause(r.leaseContext()))
		}
	}
	return nil
}

// openBefore returns the questions that the step has asked in an earlier run and that are not decided, with one channel for all.
func (r *Run) openBefore() []*question {
	notify := make(chan struct{}, 1)
	var open []*question
	for _, q := range r.Before().Questions() {
		if q.Answer == nil {
			open = append(open, &question{token: q.Token, notify: notify, over: make(chan struct{})})
		}
	}
	return open
}
