package events

import (
	"crypto/sha256"
	"time"
)

// The messages of agents and users. An inbound agent_message or user_message (decode_message.go) is stored as the event of a [Text], and
// what follows from it as the other events here: one [ContextUpdate] for each variable that it sets, a [StructuredOutput] if its
// agent has a model and no tool that runs by itself, and one [Handoff], which names the next speaker.

// AgentUser is the agent of a message that a user has written.
const AgentUser = "user"

// AgentMessage is the inbound event of what an agent or a user wrote.
type AgentMessage struct {
	TurnID           // its Turn is the key of the turn that the message makes, if it makes one; the id of the message when it names none
	ID               string
	User             bool   // a user wrote it: the agent is [AgentUser]
	Workflow         string // context.workflow_name
	Agent            string
	Content          any    // text, or the object or list that a model has given
	FinishReason     string // as the model's API reports it, "" if it is not known
	UserID           string
	TurnSequence     int64          // 0 when absent
	ContextVariables map[string]any // snapshot of the context variables, nil when the event has none
	Enterprise       bool           // the event names its tenant enterprise_id, not app_id
	Timestamp        time.Time      // of the envelope, zero when absent
}

// InboundKind returns the kind of the event.
func (m *AgentMessage) InboundKind() string {
	if m.User {
		return KindUserMessage
	}
	return KindAgentMessage
}

// Fingerprint is equal for two messages of one id with the same content: sha256 of the canonical JSON of [workflow, agent, user id,
// content, turn key]. It fails as [AppendJSON] does.
func (m *AgentMessage) Fingerprint() ([sha256.Size]byte, error) {
	b, err := AppendJSON(nil, []any{m.Workflow, m.Agent, m.UserID, m.Content, m.Turn})
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	return sha256.Sum256(b), nil
}

// Text is the event `chat.text` of an agent's message, and `chat.user_message` of a user's: the claim of the message. A reader
// displays it unless ui_hidden is true. What the worker has read in the content is stored with it, so that a worker which
// continues reads nothing again with other manifests.
type Text struct {
	Kind             string       `json:"kind"`
	ID               string       `json:"id"` // equals message_id
	MessageID        string       `json:"message_id"`
	AppID            string       `json:"app_id"`
	ChatID           string       `json:"chat_id"`
	RunID            string       `json:"run_id,omitempty"`
	TurnSequence     int64        `json:"turn_sequence,omitempty"`
	OutOfOrder       bool         `json:"out_of_order,omitempty"` // a later message of the run was handled before
	Agent            string       `json:"agent"`
	UserID           string       `json:"user_id,omitempty"`
	WorkflowName     string       `json:"workflow_name"`
	Content          any          `json:"content"` // text to display, the object or list that was sent, or a [Blob]
	UIHidden         bool         `json:"ui_hidden"`
	IsVisual         bool         `json:"is_visual"`                      // the manifests let frontends display this agent
	Turn             string       `json:"turn_idempotency_key,omitempty"` // of the turn that the message makes
	Model            string       `json:"model_name,omitempty"`           // of the agent
	StructuredOutput any          `json:"structured_output,omitempty"`    // the object that was found in the content, or a [Blob]
	Repairs          []string     `json:"repairs,omitempty"`              // what was repaired in it
	Around           []string     `json:"around,omitempty"`               // what stood around it
	Warnings         []string     `json:"warnings,omitempty"`             // what looks wrong: [WarningUnknownAgent], or a warning of package agentjson about the object
	Unread           *Rejection   `json:"unread,omitempty"`               // why no object was found, or of an agent without a tool why it does not fit the model
	Corrections      int          `json:"corrections,omitempty"`          // how often a model is asked to correct the output if it cannot be used
	Changes          []TextChange `json:"changes,omitempty"`              // what the triggers of the agent's texts may change
}

// TurnFingerprint is the fingerprint of the turn that the message makes, in hex: of its object, or of its content if no object was
// found. It is "" if the message makes no turn, or if the data is in a blob.
func (t *Text) TurnFingerprint() string {
	data := t.StructuredOutput
	if t.Unread != nil {
		data = t.Content
	}
	if _, outside := BlobOf(data); outside || t.Turn == "" {
		return ""
	}
	sum := Fingerprint(&StructuredOutputReady{Workflow: t.WorkflowName, Agent: t.Agent, Model: t.Model, Data: data})
	return Hex(sum)
}

// WarningUnknownAgent is a warning of a [Text]: the manifests of its workflow name other agents, and not this one. Probably its name is
// misspelt, and its message would have more than a text.
const WarningUnknownAgent = "unknown_agent"

// TextChange is a step of a trigger whose text matches: it sets a variable if that has the value From, or whatever value it has
// if From is nil.
type TextChange struct {
	Variable string `json:"variable"`
	From     any    `json:"from,omitempty"`
	Value    any    `json:"value"`
}

// ContextUpdate is the event `chat.context_update`: a context variable of the chat has a new value.
type ContextUpdate struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // message_id, or tool_call_id of the question whose answer has set it
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	MessageID    string `json:"message_id,omitempty"`
	Agent        string `json:"agent"`
	WorkflowName string `json:"workflow_name"`
	Variable     string `json:"variable"`
	Value        any    `json:"value"`
}

// StructuredOutput is the event `chat.structured_output` of an agent that has a model and no tool that runs by itself: its object,
// or why it has none, with feedback for the model.
type StructuredOutput struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // message_id
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	MessageID    string `json:"message_id"`
	TurnSequence int64  `json:"turn_sequence,omitempty"`
	Agent        string `json:"agent"`
	WorkflowName string `json:"workflow_name"`
	Model        string `json:"model_name"`
	Status       string `json:"status"` // "ok" or "error"
	Success      bool   `json:"success"`
	Content      string `json:"content,omitempty"` // of a failure, for people
	Code         Code   `json:"code,omitempty"`
	Payload      any    `json:"payload"`         // the object or a [Blob]; of a failure a [ValidationFailure]
	Usage        *Usage `json:"usage,omitempty"` // of the corrections that were made
}

// Handoff is the event `chat.handoff`: the speaker after a message. To is nil if the rules give no one, see reason.
type Handoff struct {
	Kind         string        `json:"kind"`
	ID           string        `json:"id"` // message_id
	AppID        string        `json:"app_id"`
	ChatID       string        `json:"chat_id"`
	RunID        string        `json:"run_id,omitempty"`
	MessageID    string        `json:"message_id"`
	TurnSequence int64         `json:"turn_sequence,omitempty"`
	Turn         string        `json:"turn_idempotency_key,omitempty"` // of the turn that the message has made
	WorkflowName string        `json:"workflow_name"`
	From         string        `json:"from"`
	To           *string       `json:"to"`
	Rule         *int          `json:"rule,omitempty"` // place in the list of the manifest, from 0
	Reason       string        `json:"reason"`
	Code         string        `json:"code,omitempty"` // of an undecided one: why
	Message      string        `json:"message,omitempty"`
	Via          []Via         `json:"via,omitempty"`
	Fallback     any           `json:"fallback,omitempty"` // of an undecided one: what the other rules give, in the form of to, rule, reason, via
	Ignored      []IgnoredRule `json:"ignored,omitempty"`  // rules of the agent that cannot be used
}

// IgnoredRule is a rule that cannot be used.
type IgnoredRule struct {
	Rule int    `json:"rule"` // place in the list of the manifest, from 0
	Code string `json:"code"` // why
}

// Via is an agent that was chosen, and whose pre rule chooses another one before it speaks.
type Via struct {
	Agent string `json:"agent"`
	Rule  int    `json:"rule"`
}

// MessageConflict is the live event `chat.message_conflict`: the id of a message was used again with other content. The second
// message changes nothing.
type MessageConflict struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // message_id
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	MessageID    string `json:"message_id"`
	Agent        string `json:"agent"`
	WorkflowName string `json:"workflow_name"`
	Fingerprint  string `json:"fingerprint"`
}
