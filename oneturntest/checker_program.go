// checker_program.go has the invariants of programs: each of their steps is a call with its own effect, and all of them
// share the claim, the epochs and the end of their turn.

package oneturntest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// effectProgram is the effect of a call whose tool runs programs.
const effectProgram = string(events.EffectProgram)

// callKey returns the journal key of a call by its turn and its tool_call_id.
func callKey(id events.TurnID, call string) subjects.Key {
	key := subjects.TurnKey(id.App, id.Chat, id.Run, id.Turn)
	if step, ok := strings.CutPrefix(call, events.StepID(events.CallID(id, key.Turn), "")); ok {
		return key.WithCall(subjects.CallOf(step))
	}
	return key
}

// approves returns the call whose tool runs the program that a call asks a person to approve, nil if the call is another one.
func (f *callFacts) approves() *callFacts {
	outer, ok := strings.CutSuffix(subjects.StepOf(f.token), events.StepApprove)
	if !ok {
		return nil
	}
	return f.calls[subjects.CallOf(strings.TrimSuffix(outer, "#"))]
}

// endedBefore reports whether a call of a program had its response when a record was stored: its questions are closed then. A
// question before a program is closed with the step that runs it.
func (f *callFacts) endedBefore(r *idempotency.Record) bool {
	if program := f.approves(); program != nil {
		f = program
	}
	return f.token != subjects.SingleCall && f.response != nil && f.response.Seq < r.Seq
}

// id returns the tool_call_id of a call, as its tool_call has it. The question before a program has no tool_call.
func (f *callFacts) id() (id string, ok bool) {
	from := f
	if program := f.approves(); program != nil {
		from = program
	}
	var called events.ToolCall
	if from.call == nil || parse(from.call.Data, &called) != nil {
		return "", false
	}
	if from != f {
		return events.StepID(called.ToolCallID, events.StepApprove), true
	}
	return called.ToolCallID, true
}

// ledgered reports whether the tool of a call writes a ledger: a runner of programs and an agent that plans or responds do not.
func (f *callFacts) ledgered() bool {
	id, _ := f.id()
	return f.effect() != effectProgram && !strings.Contains(id, events.StepID("", "~"))
}

// overtaken reports whether a call was stored after an epoch had begun, by an owner of an earlier one, which had lost the turn
// and did not know it. What the owner of the epoch does need not take the call into account.
func (t *turnFacts) overtaken(call *idempotency.Record, epoch int) bool {
	return call.Meta.Epoch < epoch && call.Seq > t.began[epoch]
}

// program checks the steps of a turn, each as a call with its own effect.
func (c *checker) program(t *turnFacts) {
	own := t.own()
	if own.effect() == effectProgram && own.enters > 0 {
		c.failf("I2", t.key, "the ledger has %d entries without a step: note the id of the call with each", own.enters)
	}
	for _, token := range slices.Sorted(maps.Keys(t.calls)) {
		if f := t.calls[token]; token != subjects.SingleCall && token != subjects.Absent {
			c.step(f)
		}
	}
}

func (c *checker) step(f *callFacts) {
	switch {
	case f.call != nil:
	case f.response != nil:
		c.failf("I4", f.name, "a response without a call")
		return
	case f.enters > 0:
		c.failf("I2", f.name, "entered, but not called: no record of the call is stored")
		return
	default: // a question of oneturn itself
		c.asked(f)
		return
	}
	if rejected(f.own().call) {
		c.failf("I2", f.name, "called, but the program of the turn was rejected")
	}
	if f.response != nil {
		c.outcome(f)
	} else {
		c.enteredOnce(f)
	}
	c.entries(f)
	c.waiting(f)
	c.inOrder(f)
	c.closed(f)
	c.asked(f)
}

func rejected(call *idempotency.Record) bool {
	var claimed events.ToolCall
	return call != nil && parse(call.Data, &claimed) == nil && claimed.Rejected
}

// entries compares the entries of the tool of a step with the records of the step.
func (c *checker) entries(f *callFacts) {
	for _, e := range f.ledger {
		if e.Phase != PhaseEnter {
			continue
		}
		at := time.Unix(0, e.UnixNS)
		if e.UnixNS > 0 && at.Before(f.call.Time) && f.call.Err == nil { // else it was stored again
			c.failf("I2", f.name, "entered by epoch %d before its call was stored", e.Epoch)
		}
		if f.effect() == "unsafe" && e.Epoch != f.call.Meta.Epoch {
			c.failf("I2", f.name, "effect unsafe, called by epoch %d and entered by epoch %d", f.call.Meta.Epoch, e.Epoch)
		}
		switch r := f.response; {
		case r == nil:
		case r.Seq < e.Token:
			c.failf("I2", f.name, "entered by epoch %d, which began after the step had ended", e.Epoch)
		case r.Meta.Nonce == f.runs[e.Epoch] && at.After(r.Time):
			c.failf("I2", f.name, "entered by epoch %d after it had stored the response of the step", e.Epoch)
		}
		if e.Epoch > 1 && !f.continues(e.Epoch-1, at) {
			c.failf("I2", f.name, "entered by epoch %d, though the step was parked and none of its questions was decided", e.Epoch)
		}
	}
}

// continues reports whether a step may be entered at a time after an epoch: it is not one that was parked with its questions and
// waits for all of them.
func (f *callFacts) continues(after int, at time.Time) bool {
	park := f.parks[after]
	if park == nil || park.Meta.Outcome != parked {
		return true
	}
	open, err := openAt(park)
	waits := false
	for _, name := range open {
		if call, question := questionAt(name); call == f.token {
			q := f.questions[question]
			if q != nil && q.answer != nil && !q.answer.Time.After(at) {
				return true
			}
			waits = true
		}
	}
	return err != nil || !waits
}

// waiting checks that the turn was not parked while an unsafe step ran.
func (c *checker) waiting(f *callFacts) {
	for epoch, p := range f.parks {
		runs := f.call.Seq < p.Seq && (f.response == nil || f.response.Seq > p.Seq)
		if p.Meta.Outcome == parked && runs && f.effect() == "unsafe" && !f.overtaken(f.call, epoch) {
			c.failf("I6", f.name, "epoch %d is parked, though the tool of the step is unsafe and runs", epoch)
		}
	}
}

// inOrder checks that a step was called when the stored program has it called: after the program was stored and the steps before
// it were over.
func (c *checker) inOrder(f *callFacts) {
	var called events.ToolCall
	if parse(f.call.Data, &called) != nil {
		c.failf("I3", f.name, "the call cannot be read")
		return
	}
	if f.cancel != nil && f.cancel.Seq < f.began[f.call.Meta.Epoch] {
		c.failf("I2", f.name, "called by epoch %d, which began after the cancel", f.call.Meta.Epoch)
	}
	turn, _ := f.own().id()
	path, ok := strings.CutPrefix(called.ToolCallID, events.StepID(turn, ""))
	outer, name := turn, path
	if at := strings.LastIndexByte(path, '#'); at >= 0 { // of a program in a step
		outer, name = events.StepID(turn, path[:at]), path[at+1:]
	}
	runner := f.runner(outer)
	switch {
	case runner == nil || !ok || called.Program != turn || called.Step != path:
		c.failf("I4", f.name, "call %s names step %q of program %q: the turn has no such program", called.ToolCallID, called.Step, called.Program)
		return
	case name == events.StepPlan:
		if runner.program != nil && f.response == nil {
			c.failf("I4", f.name, "the program is stored, and its planner has no response")
		}
		return
	case name == events.StepRespond:
		c.responds(f, runner)
		return
	case runner.program == nil || runner.program.Seq > f.call.Seq:
		c.failf("I4", f.name, "called before the program was stored")
		return
	}
	started, err := events.ReadPlanStarted(runner.program.Data)
	if err != nil {
		c.failf("I3", f.name, "the program cannot be read: %v", err)
		return
	}
	p, err := flow.DecodeProgram(started.ProgramData)
	if err != nil || len(p.Steps) == 0 {
		return // in a blob
	}
	step := p.StepOf(name)
	if step == nil {
		c.failf("I4", f.name, "called, but the program has no call %q", name)
		return
	}
	if _, copied := copiedBy(started)[name]; copied {
		c.failf("I2", f.name, "called, though the retry has copied its end")
		return
	}
	for i := range p.Steps {
		p.Steps[i].Parallel = len(p.Steps[i].Calls)
	}
	next := p.Next(withCopies(f.stateBefore(p, step, outer), started)).Start
	if !slices.ContainsFunc(next, func(call *flow.Call) bool { return call.ID == name }) {
		c.failf("I4", f.name, "called before the steps before it were over, or after one that halted the program")
	}
}

// runner returns the call of the turn that runs the program with an id, nil if there is none.
func (f *callFacts) runner(id string) *callFacts {
	for _, other := range f.calls {
		if of, ok := other.id(); ok && of == id && other.effect() == effectProgram {
			return other
		}
	}
	return nil
}

// stateBefore returns what was stored of the calls of the program before a step when a call of that step was stored.
func (f *callFacts) stateBefore(p *flow.Program, step *flow.Step, id string) flow.State {
	state := flow.State{}
	for i := range p.Steps {
		if p.Steps[i].ID == step.ID {
			break
		}
		for j := range p.Steps[i].Calls {
			name := p.Steps[i].Calls[j].ID
			before := f.calledAs(events.StepID(id, name))
			var answered events.ToolResponse
			switch {
			case before == nil || before.call.Seq > f.call.Seq:
			case before.response == nil || before.response.Seq > f.call.Seq:
				// Of an earlier owner, it does not run any more: a race may be over without it.
				if before.call.Meta.Epoch == f.call.Meta.Epoch {
					state[name] = flow.CallState{Called: true}
				}
			case parse(before.response.Data, &answered) == nil:
				state[name] = flow.CallState{Called: true, Ended: true, Success: answered.Success, Code: string(answered.Code), Seq: before.response.Seq}
			}
		}
	}
	return state
}

// calledAs returns the call with a tool_call_id, nil if it has no record.
func (t *turnFacts) calledAs(id string) *callFacts {
	for _, f := range t.calls {
		if of, ok := f.id(); ok && of == id && f.call != nil {
			return f
		}
	}
	return nil
}

// responds checks that an agent is asked to respond after the result of the program was stored, and that after its steps.
func (c *checker) responds(f, runner *callFacts) {
	if runner.program == nil {
		return // it was refused
	}
	if runner.result == nil || runner.result.Seq > f.call.Seq {
		c.failf("I4", f.name, "called before the result of the program was stored")
		return
	}
	for _, step := range f.calls {
		if step.call == nil || step == f || step == runner || step.call.Seq > runner.result.Seq || f.overtaken(step.call, runner.result.Meta.Epoch) {
			continue
		}
		if step.response == nil || step.response.Seq > runner.result.Seq {
			c.failf("I4", step.name, "the result of the program is stored, and the step has no response")
		}
	}
}

// closing is how long the end of a turn may take, from when its last worker reads which steps have no response.
const closing = 5 * time.Second

// closed checks that a step has a response before the turn has one. An owner that has lost the turn may still call a step, which
// is then without a response, or gets a late one.
func (c *checker) closed(f *callFacts) {
	end := f.own().response
	if end == nil || f.response != nil && f.response.Seq < end.Seq {
		return
	}
	newest := len(f.runs)
	switch lost := f.call.Meta.Nonce != end.Meta.Nonce; {
	case lost && f.call.Seq > end.Seq:
	case lost && (newest <= 1 || f.overtaken(f.call, newest)) && end.Time.Sub(f.call.Time) < closing:
	default:
		c.failf("I1", f.name, "called, and without a response when the turn ended")
	}
}
