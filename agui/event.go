package agui

import "sync"

// EventType is the `type` of an event.
type EventType string

// The event types of AG-UI 1.0.
const (
	TypeRunStarted              EventType = "RUN_STARTED"
	TypeRunFinished             EventType = "RUN_FINISHED"
	TypeRunError                EventType = "RUN_ERROR"
	TypeStepStarted             EventType = "STEP_STARTED"
	TypeStepFinished            EventType = "STEP_FINISHED"
	TypeTextMessageStart        EventType = "TEXT_MESSAGE_START"
	TypeTextMessageContent      EventType = "TEXT_MESSAGE_CONTENT"
	TypeTextMessageEnd          EventType = "TEXT_MESSAGE_END"
	TypeTextMessageChunk        EventType = "TEXT_MESSAGE_CHUNK"
	TypeToolCallStart           EventType = "TOOL_CALL_START"
	TypeToolCallArgs            EventType = "TOOL_CALL_ARGS"
	TypeToolCallEnd             EventType = "TOOL_CALL_END"
	TypeToolCallChunk           EventType = "TOOL_CALL_CHUNK"
	TypeToolCallResult          EventType = "TOOL_CALL_RESULT"
	TypeStateSnapshot           EventType = "STATE_SNAPSHOT"
	TypeStateDelta              EventType = "STATE_DELTA"
	TypeMessagesSnapshot        EventType = "MESSAGES_SNAPSHOT"
	TypeActivitySnapshot        EventType = "ACTIVITY_SNAPSHOT"
	TypeActivityDelta           EventType = "ACTIVITY_DELTA"
	TypeReasoningStart          EventType = "REASONING_START"
	TypeReasoningMessageStart   EventType = "REASONING_MESSAGE_START"
	TypeReasoningMessageContent EventType = "REASONING_MESSAGE_CONTENT"
	TypeReasoningMessageEnd     EventType = "REASONING_MESSAGE_END"
	TypeReasoningMessageChunk   EventType = "REASONING_MESSAGE_CHUNK"
	TypeReasoningEnd            EventType = "REASONING_END"
	TypeReasoningEncryptedValue EventType = "REASONING_ENCRYPTED_VALUE"
	TypeSubagentStarted         EventType = "SUBAGENT_STARTED"
	TypeSubagentFinished        EventType = "SUBAGENT_FINISHED"
	TypeSubagentError           EventType = "SUBAGENT_ERROR"
	TypeRaw                     EventType = "RAW"
	TypeCustom                  EventType = "CUSTOM"
)

// Event is a pointer to one of the event structs of this package, for example *[RunStarted], or a *[Shared] of one. The events that are
// deprecated (THINKING_*) or were never released (META) have none: clients reject them.
type Event interface {
	// Type returns the event's type, which its JSON begins with.
	Type() EventType
	// MarshalJSON returns the event as one line of JSON.
	MarshalJSON() ([]byte, error)

	base() *Base
}

// Base has the fields that every event may carry.
type Base struct {
	// Timestamp is in milliseconds since 1970, as [time.Time.UnixMilli] returns it; 0 is omitted.
	Timestamp int64 `json:"timestamp,omitzero"`
	// Metadata is open by key; empty is omitted.
	Metadata map[string]any `json:"metadata,omitempty"`
	// RawEvent is the provider's event that this one was made from; null and empty values are omitted.
	RawEvent any `json:"rawEvent,omitempty"`
}

func (b *Base) base() *Base { return b }

// Shared is an event that several streams send, which is encoded once. It must not be changed.
type Shared struct {
	Event

	encode sync.Once
	data   []byte
	err    error
}

// MarshalJSON implements [Event].
func (s *Shared) MarshalJSON() ([]byte, error) {
	s.encode.Do(func() { s.data, s.err = s.Event.MarshalJSON() })
	return s.data, s.err
}

// unshared returns the event that a shared one holds, or the event itself.
func unshared(e Event) Event {
	if s, ok := e.(*Shared); ok {
		return s.Event
	}
	return e
}
