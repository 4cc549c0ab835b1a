package events

import (
	"iter"
	"strings"
)

// MaxStepBytes bounds the id of a call in a program.
const MaxStepBytes = 256

// Internal steps: calls that oneturn makes for a program, which are not in it. No id of a step in a program contains '~'.
const (
	StepPlan    = "~plan"    // asks a model for the plan
	StepRespond = "~respond" // asks a model to write the answer
	StepApprove = "~approve" // asks people to approve the plan
)

// IsInternalStep reports whether the id of a call in a program, or in a program that is nested in it, is one of these.
func IsInternalStep(call string) bool { return strings.Contains(call, "~") }

// StepID returns the tool_call_id of a call in a program: the id of the turn's call, '#' and the id of the call in
// the program. In a nested program the latter is the id of the outer call, '#' and the id in the nested program.
func StepID(callID, call string) string { return callID + "#" + call }

// StepIDs returns each pair of a turn's call id and a call that [StepID] may have made the id of, the one with the
// shortest call id first. There can be several, since turn keys may contain '#', and none if no step has the
// id. The id of a question of a step is to be parsed by [ParseQuestionID] first.
func StepIDs(id string) iter.Seq2[string, string] {
	return func(yield func(callID, call string) bool) {
		start := strings.LastIndexFunc(id, func(r rune) bool { return !inStep(r) }) + 1
		start = max(start, len(id)-MaxStepBytes-1)
		for i := start; i < len(id); i++ {
			if id[i] == '#' && isStep(id[i+1:]) && i > 0 && !yield(id[:i], id[i+1:]) {
				return
			}
		}
	}
}

// isStep reports whether characters of ids of steps are such an id: ids that '#' separates.
func isStep(id string) bool {
	return id != "" && id[0] != '#' && id[len(id)-1] != '#' && !strings.Contains(id, "##")
}

// inStep reports whether r may be in the id of a step.
func inStep(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.:~#[]-", r)
}
