package query

import (
	"slices"
	"strings"

	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// The program of a turn as a tree: the steps in the order of the program, with what the journal has of each.

// States of steps of a program that were not called.
const (
	StepPending api.StepState = "pending"
	StepSkipped api.StepState = "skipped" // and the turn has ended
	StepStopped api.StepState = "stopped" // another call of its group has succeeded first
)

// ProgramStep is a step of a program: a call, or a group of calls that run at the same time.
type ProgramStep struct {
	api.Step                   // of a group: its id and state
	Record   *idempotency.Call // nil for a group, and a step that was not called
	Needs    []string          // calls that its arguments refer to
	Approval *Approval         // of the call that asks whether the program may run, nil while it is open
	Merge    string            // of a group: how its value is made, "" for a call
	Winner   string            // of a group: the call whose success came first, if only that counts
	Partial  bool              // of a group: some of its calls have succeeded, but not all
	Steps    []ProgramStep     // the calls of a group, or of the program that the step runs
}

// ProgramOf returns the steps of the program of a turn in the order of the program, nil for a turn that is one call. Calls that
// oneturn makes for the program are steps of it. A program that cannot be read has the steps that were called.
func ProgramOf(t *idempotency.Turn) []ProgramStep {
	left := map[string]*idempotency.Call{} // by the call token
	for _, c := range t.Steps() {
		left[c.Key.Call] = c
	}
	p := &programTree{turn: t, left: left}
	steps := p.steps(&t.Call, "", 1)
	for _, c := range t.Steps() {
		if left[c.Key.Call] != nil {
			steps = append(steps, ProgramStep{Step: StepOf(t, c), Record: c})
		}
	}
	return steps
}

// mergeFirst is the merge of a group whose value is the output of its first success.
const mergeFirst = "first_success"

type programTree struct {
	turn *idempotency.Turn
	left map[string]*idempotency.Call // steps that have no place in the tree yet
}

// steps returns the steps of the program that a call runs.
func (p *programTree) steps(of *idempotency.Call, prefix string, depth int) []ProgramStep {
	steps := p.called(prefix+events.StepPlan, prefix+events.StepApprove)
	if of.Program != nil {
		if e, err := events.ReadPlanStarted(of.Program.Data); err == nil {
			steps = append(steps, p.planned(&e.Payload, prefix, depth)...)
		}
	}
	return append(steps, p.called(prefix+events.StepRespond)...)
}

// called returns the steps with these ids that have a record.
func (p *programTree) called(ids ...string) (steps []ProgramStep) {
	for _, id := range ids {
		if c := p.left[subjects.CallOf(id)]; c != nil {
			steps = append(steps, p.step(id, 0))
		}
	}
	return steps
}

// planned returns the steps of a stored program.
func (p *programTree) planned(plan *events.PlanPayload, prefix string, depth int) []ProgramStep {
	groupOf := map[string]int{}
	for i := range plan.Groups {
		for _, child := range plan.Groups[i].Children {
			groupOf[child] = i
		}
	}
	var steps []ProgramStep
	placeOf := map[int]int{} // of groups among the steps
	for i := range plan.Steps {
		step := p.step(prefix+plan.Steps[i].Call, depth)
		if step.Record == nil && plan.Steps[i].Copied != nil {
			step.Step = copiedStep(prefix, depth, &plan.Steps[i])
		}
		step.Tool, step.Needs = plan.Steps[i].ToolName, plan.Steps[i].Needs
		g, inGroup := groupOf[plan.Steps[i].Call]
		if !inGroup {
			steps = append(steps, step)
			continue
		}
		at, began := placeOf[g]
		if !began {
			group := &plan.Groups[g]
			at, placeOf[g] = len(steps), len(steps)
			steps = append(steps, ProgramStep{Step: api.Step{Call: prefix + group.Call, Depth: depth}, Merge: group.Merge})
		}
		steps[at].Steps = append(steps[at].Steps, step)
	}
	for i := range steps {
		if steps[i].Merge != "" {
			steps[i].endGroup()
		}
	}
	return steps
}

// copiedStep returns a step that a retry has copied, from the stored program whose ids have this prefix.
func copiedStep(prefix string, depth int, s *events.PlanStep) api.Step {
	return api.Step{
		Call: prefix + s.Call, Tool: s.ToolName, Depth: depth, State: api.StepCopied,
		Success: s.Copied.Success, Code: s.Copied.Code, CopiedFrom: s.Copied.From,
	}
}

// step returns a call of the program, with the calls of the program that it runs.
func (p *programTree) step(id string, depth int) ProgramStep {
	token := subjects.CallOf(id)
	c := p.left[token]
	if c == nil {
		state := StepPending
		if p.turn.Response != nil {
			state = StepSkipped
		}
		return ProgramStep{Step: api.Step{Call: id, Depth: depth, State: state}}
	}
	delete(p.left, token)
	step := ProgramStep{Step: StepOf(p.turn, c), Record: c}
	step.Call = id
	if strings.HasSuffix("#"+id, "#"+events.StepApprove) {
		if step.Approval = approvalOf(p.turn, c); step.Approval != nil {
			step.State, step.Success = api.StepEnded, step.Approval.State == Approved
		}
	}
	if !events.IsInternalStep(id) { // these run no programs
		step.Steps = p.steps(c, id+"#", depth+1)
	}
	return step
}

// endGroup sets the state of a group and, once it has ended, how: by all of its calls, or by the success that was stored first.
func (s *ProgramStep) endGroup() {
	s.State = stateOfGroup(s.Steps)
	succeeded, seq := 0, uint64(0)
	for i := range s.Steps {
		c := &s.Steps[i]
		if !c.Success {
			continue
		}
		succeeded++
		if s.Merge != mergeFirst {
			continue
		}
		at := uint64(0) // of a copied one: before those that run
		if c.Record != nil && c.Record.Response != nil {
			at = c.Record.Response.Seq
		}
		if s.Winner == "" || at < seq {
			s.Winner, seq = c.Call, at
		}
	}
	if s.Winner != "" {
		s.stopLosers()
		s.State = stateOfGroup(s.Steps)
	}
	if s.State == api.StepEnded || s.State == api.StepCopied {
		s.Success = s.Winner != "" || succeeded == len(s.Steps)
		s.Partial = !s.Success && succeeded > 0
	}
}

// stopLosers notes which calls were stopped, or are not started, because another one of the group has won.
func (s *ProgramStep) stopLosers() {
	for i := range s.Steps {
		switch c := &s.Steps[i]; {
		case c.State == StepPending:
			c.State = StepSkipped
		case c.State == api.StepEnded && !c.Success && c.Code == events.CodeCancelled:
			c.State = StepStopped
		}
	}
}

// stateOfGroup returns the state of a group: as long as a call of it runs or waits, so does it.
func stateOfGroup(calls []ProgramStep) api.StepState {
	for _, state := range []api.StepState{api.StepRunning, api.StepWaiting} {
		if slices.ContainsFunc(calls, func(s ProgramStep) bool { return s.State == state }) {
			return state
		}
	}
	ended := slices.ContainsFunc(calls, func(s ProgramStep) bool { return s.State == api.StepEnded || s.State == api.StepCopied })
	switch pending := slices.ContainsFunc(calls, func(s ProgramStep) bool { return s.State == StepPending }); {
	case pending && ended: // the next call of it is about to start
		return api.StepRunning
	case ended && slices.ContainsFunc(calls, func(s ProgramStep) bool { return s.State != api.StepCopied }):
		return api.StepEnded
	}
	return calls[0].State
}
