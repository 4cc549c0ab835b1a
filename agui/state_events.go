package agui

// What a client replaces or patches: shared state, the messages, and activities.

// StateSnapshot replaces the state.
type StateSnapshot struct {
	Snapshot      any    `json:"snapshot"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*StateSnapshot) Type() EventType { return TypeStateSnapshot }

// MarshalJSON implements [Event].
func (e *StateSnapshot) MarshalJSON() ([]byte, error) {
	type fields StateSnapshot
	return encodeEvent(e.Type(), (*fields)(e))
}

// StateDelta changes the state. Clients skip it if it does not apply, so a snapshot precedes the first one.
type StateDelta struct {
	Delta         Patch  `json:"delta"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*StateDelta) Type() EventType { return TypeStateDelta }

// MarshalJSON implements [Event].
func (e *StateDelta) MarshalJSON() ([]byte, error) {
	type fields StateDelta
	return encodeEvent(e.Type(), (*fields)(e))
}

// MessagesSnapshot restates the conversation: clients replace the messages whose id they have, append the others, and drop
// those that it lacks, except activities and reasoning if it has none.
type MessagesSnapshot struct {
	Messages []Message `json:"messages"`
	Base
}

// Type implements [Event].
func (*MessagesSnapshot) Type() EventType { return TypeMessagesSnapshot }

// MarshalJSON implements [Event].
func (e *MessagesSnapshot) MarshalJSON() ([]byte, error) {
	type fields MessagesSnapshot
	return encodeEvent(e.Type(), (*fields)(e))
}

// ActivitySnapshot creates or replaces an activity, for example the progress of a call.
type ActivitySnapshot struct {
	MessageID     string         `json:"messageId"`
	ActivityType  string         `json:"activityType"`
	Content       map[string]any `json:"content"`
	Replace       *bool          `json:"replace,omitzero"` // nil is true; false keeps an activity that exists
	SubagentRunID string         `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ActivitySnapshot) Type() EventType { return TypeActivitySnapshot }

// MarshalJSON implements [Event].
func (e *ActivitySnapshot) MarshalJSON() ([]byte, error) {
	type fields ActivitySnapshot
	return encodeEvent(e.Type(), (*fields)(e))
}

// ActivityDelta changes an activity. Clients skip it if they do not have the activity.
type ActivityDelta struct {
	MessageID     string `json:"messageId"`
	ActivityType  string `json:"activityType"`
	Patch         Patch  `json:"patch"`
	SubagentRunID string `json:"subagentRunId,omitzero"`
	Base
}

// Type implements [Event].
func (*ActivityDelta) Type() EventType { return TypeActivityDelta }

// MarshalJSON implements [Event].
func (e *ActivityDelta) MarshalJSON() ([]byte, error) {
	type fields ActivityDelta
	return encodeEvent(e.Type(), (*fields)(e))
}
