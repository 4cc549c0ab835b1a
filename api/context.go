package api

import "encoding/json"

// ContextRequest asks for the context variables of a chat of the subject's tenant. The reply is a [Context].
type ContextRequest struct {
	Chat string `json:"chat_id"`
	// Workflow whose declared variables are returned, also those that nothing has set: by default the workflow of the chat's newest
	// turn or message.
	Workflow string `json:"workflow_name,omitempty"`
}

// Context is the reply to [VerbContext]: the context variables of a chat as they are now, and what was decided for its newest
// messages.
type Context struct {
	Chat     string `json:"chat_id"`
	Workflow string `json:"workflow_name,omitempty"` // "" if it is not known: then only variables that were set are returned
	Revision uint64 `json:"revision"`                // of the stored variables, 0 if the chat has none
	// Variables by their names: the stored values, and of declared variables that nothing has set the start values.
	Variables map[string]json.RawMessage `json:"variables"`
	// Set has the variables that were set in the chat: the sequence in the journal of the record that set each last, 0 if a tool has read the
	// value.
	Set map[string]uint64 `json:"set,omitempty"`
	// Private are declared variables that nothing has set in the chat and whose start values are not returned, since they are from
	// the environment or a file of the workers.
	Private []string `json:"private,omitempty"`
	// Omitted are variables that do not fit into the reply, with the sizes of their values in bytes.
	Omitted map[string]int `json:"omitted,omitempty"`

	LastSpeaker  string `json:"last_speaker,omitempty"`  // the agent that spoke last
	Run          string `json:"run_id,omitempty"`        // of the last message that had a turn_sequence
	TurnSequence int64  `json:"turn_sequence,omitempty"` // of that message

	Messages []DecidedMessage `json:"messages,omitempty"` // the newest 16 that may change variables or have a handoff, the newest last
}

// DecidedMessage is what was decided for a message of an agent or a user.
type DecidedMessage struct {
	ID         string          `json:"message_id,omitempty"` // "" for an id that the journal has as a hash only: the sequence leads to the text
	Run        string          `json:"run_id,omitempty"`
	Sequence   uint64          `json:"sequence"`               // of its text in the journal
	OutOfOrder bool            `json:"out_of_order,omitempty"` // a later message of the run was handled before, so it changed nothing
	Refused    string          `json:"refused,omitempty"`      // why its changes were left out
	Changed    []string        `json:"changed,omitempty"`      // the variables that it has set
	Handoff    json.RawMessage `json:"handoff,omitempty"`      // as in chat.handoff: to, rule, reason, …; missing if it is not decided yet, or none is due
}
