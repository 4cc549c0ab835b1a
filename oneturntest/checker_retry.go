package oneturntest

import (
	"maps"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/subjects"
)

// A retry has copied the ends of calls that an earlier turn has finished: the program that it stores names them. They have no
// records and no entries in it.

// copiedBy returns the state of the calls that the event of a program names as copied.
func copiedBy(started *events.PlanStarted) flow.State {
	state := flow.State{}
	for i := range started.Payload.Steps {
		if c := started.Payload.Steps[i].Copied; c != nil {
			state[started.Payload.Steps[i].Call] = flow.CallState{Called: true, Ended: true, Success: c.Success, Code: string(c.Code)}
		}
	}
	return state
}

// withCopies returns a state with the calls that a program has copied.
func withCopies(state flow.State, started *events.PlanStarted) flow.State {
	maps.Copy(state, copiedBy(started))
	return state
}

// retries compares the retries with the turns that they retry, once the records of all turns are known.
func (c *checker) retries() {
	for _, key := range slices.Sorted(maps.Keys(c.turns)) {
		c.retried(c.turns[key])
	}
}

// retried compares the calls of a retry with the turn that it retries.
func (c *checker) retried(t *turnFacts) {
	var claim events.ToolCall
	if t.own().call == nil || parse(t.own().call.Data, &claim) != nil || claim.ResumeOf == "" {
		return
	}
	before := c.turns[subjects.TurnKey(claim.AppID, claim.ChatID, claim.RunID, claim.ResumeOf).String()]
	if before == nil || before.own().response == nil {
		return // its records have expired
	}
	kept := flow.State{}
	if program := before.own().program; program != nil {
		if started, err := events.ReadPlanStarted(program.Data); err == nil {
			kept = copiedBy(started)
		}
	}
	for token, f := range t.calls {
		id := subjects.StepOf(token)
		if id == "" || events.IsInternalStep(id) || f.call == nil {
			continue
		}
		if _, copied := kept[id]; copied {
			c.failf("I2", f.name, "called, though the turn that is retried, %s, has copied its end", claim.ResumeOf)
			continue
		}
		earlier := before.calls[token]
		if earlier == nil || earlier.call == nil || earlier.call.Seq > before.own().response.Seq {
			continue
		}
		switch succeeded, inDoubt := earlier.ended(); {
		case succeeded:
			c.failf("I2", f.name, "called, though it has succeeded in the turn that is retried, %s", claim.ResumeOf)
		case inDoubt && !slices.Contains(claim.Rerun, id):
			c.failf("I2", f.name, "called, though its effect may have happened in the turn that is retried, %s, and the retry does not name it", claim.ResumeOf)
		}
	}
}

// ended reports how a step of a turn that has ended has ended: with success, or so that its effect, of which a second one may be harmful,
// may have happened.
func (f *callFacts) ended() (succeeded, inDoubt bool) {
	harmful := f.effect() == string(events.EffectUnsafe) || f.effect() == string(events.EffectReplay) || f.effect() == string(events.EffectKeyed)
	var answered events.ToolResponse
	switch {
	case f.response == nil:
		return false, harmful
	case parse(f.response.Data, &answered) != nil:
		return false, false
	}
	unknown := []events.Code{
		events.CodeInterrupted, events.CodeCancelled, events.CodeTimeout, events.CodeExpired, events.CodeTooLarge, events.CodeStateCorrupt,
	}
	return answered.Success, harmful && (answered.EffectState != "" || slices.Contains(unknown, answered.Code))
}
