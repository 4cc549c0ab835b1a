package oneturntest

import (
	"maps"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
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
