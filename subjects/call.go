package subjects

import (
	"strings"

	"github.com/oneturn/oneturn/events"
)

// A turn that is a program has records under several call tokens: [SingleCall] for the program itself, one for each of
// its steps, and one for each call that oneturn makes for it. The token of a step leads back to its id unless the id is long.

// Call tokens of the calls that oneturn makes for a program.
const (
	PlanCall    = "plan"    // of [events.StepPlan]
	RespondCall = "respond" // of [events.StepRespond]
	ApproveCall = "approve" // of [events.StepApprove]
)

// stepMark begins the token of a step, so that it is none of the other call tokens.
const stepMark = "s_"

// StepCall returns the call token of a step of a program, by the id that the step has there.
func StepCall(id string) string { return Token(stepMark + id) }

// StepOfCall is the inverse of [StepCall]. It reports false for any other call token, and for one that is a hash.
func StepOfCall(token string) (id string, ok bool) {
	if !strings.HasPrefix(token, stepMark) {
		return "", false
	}
	text, hashed, err := Untoken(token)
	if err != nil || hashed || text == stepMark {
		return "", false
	}
	return strings.TrimPrefix(text, stepMark), true
}

// CallOf returns the call token of what follows the id of a turn in a tool_call_id: nothing, a step or one of the
// calls that oneturn makes for a program (see [events.StepID]).
func CallOf(step string) string {
	switch step {
	case "":
		return SingleCall
	case events.StepPlan:
		return PlanCall
	case events.StepRespond:
		return RespondCall
	case events.StepApprove:
		return ApproveCall
	}
	return StepCall(step)
}

// StepOf is the inverse of [CallOf]: what follows the id of a turn in the tool_call_id of a call, "" for the turn's own call. A
// token that is a hash leads back to no id and is returned unchanged.
func StepOf(token string) string {
	switch token {
	case SingleCall:
		return ""
	case PlanCall:
		return events.StepPlan
	case RespondCall:
		return events.StepRespond
	case ApproveCall:
		return events.StepApprove
	}
	if id, ok := StepOfCall(token); ok {
		return id
	}
	return token
}
