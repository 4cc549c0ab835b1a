package events

import (
	"slices"
	"strings"
)

// Kinds of inbound messages: the fourth token of an inbound subject, `data.kind` in the body.
const (
	KindStructuredOutputReady = "structured_output_ready"
	KindPlanReady             = "plan_ready" // a turn whose data is a plan
	KindToolCallResponse      = "tool_call_response"
	KindRetry                 = "retry" // a turn that retries a program which has failed
	KindCancel                = "cancel"
	KindResume                = "resume"
	KindExpire                = "expire"
	KindAgentMessage          = "agent_message" // what an agent wrote, see [AgentMessage]
	KindUserMessage           = "user_message"  // what a user wrote; also the kind of the stored event
)

// TurnKind reports whether messages of a kind start turns.
func TurnKind(kind string) bool {
	return slices.Contains(turnKinds(), kind)
}

func turnKinds() []string { return []string{KindStructuredOutputReady, KindPlanReady, KindRetry} }

// KindDeferredResponse is the kind of the subject, and never of the body, of an answer that a worker
// has deferred and publishes again. Only workers have the right to publish on such subjects, so its
// headers can be trusted about its age.
const KindDeferredResponse = "deferred_response"

// Older kinds of inbound answers. [Message.Answer] reads all of them; answers of these kinds may
// also come on a subject with [KindToolCallResponse] as its kind.
const (
	KindUIToolResponse  = "ui_tool_response"
	KindUIToolDismiss   = "ui_tool_dismiss"  // also published under compat.events, see [UIToolDismiss]
	KindUIToolComplete  = "ui_tool_complete" // also published under compat.events, see [UIToolComplete]
	KindUserInputSubmit = "user_input_submit"
)

// kindUserInput is how MozaiksAI's frontend spells [KindUserInputSubmit].
const kindUserInput = "user.input.submit"

// Kinds of journal records that are events as well, see docs/journal.md.
const (
	KindToolCall       = "tool_call"
	KindToolResponse   = "tool_response"
	KindToolCallCancel = "tool_call_cancel"

	KindToolCallAck     = "tool_call_ack"     // of the records ack.<id>
	KindToolCallDismiss = "tool_call_dismiss" // of the records dismiss.<id>

	KindPlanStarted  = "plan_started"  // of the record program
	KindPlanFinished = "plan_finished" // of the record result

	KindText             = "text"              // of the record text of a message; a user's has [KindUserMessage]
	KindContextUpdate    = "context_update"    // of the records context_update.<variable>
	KindStructuredOutput = "structured_output" // of the record of the same name
	KindHandoff          = "handoff"           // of the record of the same name
)

// Kinds of live events that are published but not stored.
const (
	KindTurnConflict    = "turn_conflict"
	KindMessageConflict = "message_conflict"

	KindToolProgress     = "tool_progress"
	KindToolCallRejected = "tool_call_rejected" // in the chat of the sender only
	KindRunComplete      = "run_complete"
)

// TypePrefix stands before the kind in the `type` of an envelope.
const TypePrefix = "chat."

// TypeOf returns the `type` of an event's envelope: [TypePrefix] and the kind, for every kind.
// A kind that has the prefix already keeps it once; no kind has no type.
func TypeOf(kind string) string {
	if kind == "" || strings.HasPrefix(kind, TypePrefix) {
		return kind
	}
	return TypePrefix + kind
}
