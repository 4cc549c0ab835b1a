package events

import "strings"

// Kinds of inbound messages: the fourth token of an inbound subject, `data.kind` in the body.
const (
	KindStructuredOutputReady = "structured_output_ready"
	KindToolCallResponse      = "tool_call_response"
	KindCancel                = "cancel"
	KindResume                = "resume"
)

// Kinds of journal records that are events as well (design 5).
const (
	KindToolCall       = "tool_call"
	KindToolResponse   = "tool_response"
	KindToolCallCancel = "tool_call_cancel"
)

// Kinds of live events that are published but not stored.
const (
	KindTurnConflict = "turn_conflict"
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
