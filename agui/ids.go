package agui

import "strings"

// Ids that follow from a turn or a call, so that the same event has the same ids each time it is sent, by any server.

const interruptPrefix = "int_"

// CallID returns the id of a call that has none: of a turn, by its key, or of a step of a program in it.
func CallID(turn, step string) string {
	if step == "" {
		return "tc_" + turn
	}
	return "tc_" + turn + "_" + step
}

// MessageID returns the id of the text of a turn.
func MessageID(turn string) string { return "msg_" + turn }

// ResultID returns the id of the tool message with the result of a call.
func ResultID(toolCallID string) string { return "res_" + toolCallID }

// ActivityID returns the id of the activity that shows the progress of a call.
func ActivityID(toolCallID string) string { return "act_" + toolCallID }

// InterruptID returns the id of the interrupt by which a call asks.
func InterruptID(toolCallID string) string { return interruptPrefix + toolCallID }

// CallOfInterrupt returns the call of an [InterruptID]; ok is false for other ids.
func CallOfInterrupt(id string) (toolCallID string, ok bool) {
	toolCallID, ok = strings.CutPrefix(id, interruptPrefix)
	return toolCallID, ok && toolCallID != ""
}

// StepName returns the name of the step that a turn is.
func StepName(turn string) string { return "turn:" + turn }
