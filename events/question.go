package events

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
)

// What a tool shows with a question or a surface is one JSON object. It becomes the payload of a [ToolCall] event,
// next to members that each such event has, or the name of an object in the store if it is large.

// Values of `display`: where a question or surface is shown.
const (
	DisplayComposer = "composer" // in place of the line that the user writes in
	DisplayInline   = "inline"   // among the messages
	DisplayArtifact = "artifact" // next to the messages
	DisplayView     = "view"     // instead of them
)

// ComponentUserInput is the component_type of a request for input that names none.
const ComponentUserInput = "UserInputRequest"

// DecodeShown decodes what a tool wants shown: a JSON object, by the rules of [Decode], that
// leaves room for the event around it. Nothing and null are an empty object. Every error is an
// [ErrBadArgs] or, nested over [MaxDataDepth] or of too many values, an [ErrTooLarge].
func DecodeShown(payload json.RawMessage) (map[string]any, error) {
	if len(payload) == 0 {
		return map[string]any{}, nil
	}
	const op = "decode payload"
	p := parser{s: string(payload), nodes: eventNodes}
	tree, err := p.document()
	switch {
	case p.nodes > MaxNodes || p.deepest > MaxDataDepth:
		return nil, &Error{Code: CodeTooLarge, Op: op, Msg: fmt.Sprintf(
			"nested more than %d deep or more than %d values: show less", MaxDataDepth, MaxDataNodes)}
	case err != nil:
		return nil, &Error{Code: CodeBadArgs, Op: op, Err: err}
	}
	switch v := tree.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return v, nil
	default:
		return nil, &Error{Code: CodeBadArgs, Op: op, Msg: fmt.Sprintf("it is %s: show an object", typeName(tree))}
	}
}

// Shown is what a question shows whose payload is in the object store.
func (b Blob) Shown() map[string]any {
	return map[string]any{"$blob": b.Blob, "sha256": b.SHA256, "size": json.Number(strconv.Itoa(b.Size))}
}

// BlobOf returns the blob that stands in a decoded payload in place of a value, and whether there is
// one. Data may look like a blob, too: what is stored under the name decides.
func BlobOf(payload any) (Blob, bool) {
	object, _ := payload.(map[string]any)
	name, _ := object["$blob"].(string)
	sum, _ := object["sha256"].(string)
	number, _ := object["size"].(json.Number)
	size, err := strconv.Atoi(number.String())
	return Blob{Blob: name, SHA256: sum, Size: size}, name != "" && sum != "" && err == nil && size >= 0
}

// shown is the payload of a question or surface.
func shown(e *ToolCall) map[string]any {
	m := maps.Clone(e.Payload.Shown)
	m["agent_name"] = e.Agent
	m["interaction_type"] = e.InteractionType
	m["workflow_name"] = e.WorkflowName
	m["display"] = e.Display
	m["mode"] = e.Display
	return m
}

func (w *writer) answerTo(a *AnswerTo) {
	w.open("answer")
	w.str("subject", a.Subject)
	if a.Schema != nil {
		w.value("schema", a.Schema)
	}
	if !a.ExpiresAt.IsZero() {
		w.time("expires_at", a.ExpiresAt)
	}
	w.close()
}

// UnmarshalJSON implements json.Unmarshaler: Shown gets the members that are the tool's own.
func (p *ToolCallPayload) UnmarshalJSON(data []byte) error {
	tree, err := Decode(data)
	if err != nil {
		return err
	}
	m, ok := tree.(map[string]any)
	if !ok {
		return wrongType("payload", "an object", tree)
	}
	text := func(name string) string {
		s, _ := m[name].(string)
		return s
	}
	*p = ToolCallPayload{
		AgentName: text("agent_name"), InteractionType: text("interaction_type"), WorkflowName: text("workflow_name"),
		Display: text("display"), Mode: text("mode"), AgentMessage: text("agent_message"),
	}
	if p.InteractionType == InteractionAutoTool || p.InteractionType == "" { // a claim
		p.ToolArgs = m["tool_args"]
		return nil
	}
	for _, name := range []string{"agent_name", "interaction_type", "workflow_name", "display", "mode"} {
		delete(m, name)
	}
	p.Shown = m
	return nil
}

// ToolCallAck is the event `chat.tool_call_ack`: a question is decided and needs no
// answer any more. It does not contain the answer.
type ToolCallAck struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // equals tool_call_id
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	Turn         string `json:"turn"`
	TurnSequence int64  `json:"turn_sequence,omitempty"`
	Agent        string `json:"agent,omitempty"`
	ToolName     string `json:"tool_name,omitempty"`
	ToolCallID   string `json:"tool_call_id"` // of the question
	CallID       string `json:"call_id,omitempty"`
	Corr         string `json:"corr,omitempty"`
	WorkflowName string `json:"workflow_name"`
	Status       string `json:"status"`            // see AckAccepted
	UserID       string `json:"user_id,omitempty"` // the user that answered
	// Dismissed is set if the answer is no more than a dismissal, see [IsDismissal]. Frontends then display the question as
	// cancelled, and not as answered.
	Dismissed bool `json:"dismissed,omitempty"`
}

// Values of `status` in a [ToolCallAck].
const (
	AckAccepted  = "accepted"  // it was answered
	AckExpired   = "expired"   // it was not answered in time
	AckCancelled = "cancelled" // the turn was cancelled
)

// Ack is the event that closes question e: user is the one that answered, "" for none.
func (e *ToolCall) Ack(status, user string) *ToolCallAck {
	return &ToolCallAck{
		Kind: KindToolCallAck, ID: e.ID, AppID: e.AppID, ChatID: e.ChatID, RunID: e.RunID, Turn: e.Turn, TurnSequence: e.TurnSequence,
		Agent: e.Agent, ToolName: e.ToolName, ToolCallID: e.ToolCallID, CallID: e.CallID, Corr: e.Corr, WorkflowName: e.WorkflowName,
		Status: status, UserID: user,
	}
}

// IsDismissal reports whether an answer, as JSON, is {"status":"cancelled"} or {"status":"dismissed"} and nothing else: a person has
// closed the question without an answer.
func IsDismissal(answer []byte) bool {
	const longest = 64 // bytes, with white space
	var members map[string]json.RawMessage
	if len(answer) > longest || json.Unmarshal(answer, &members) != nil || len(members) != 1 {
		return false
	}
	status := string(members["status"])
	return status == `"cancelled"` || status == `"dismissed"`
}

// ToolCallDismiss is the event `chat.tool_call_dismiss`: a tool ends the display of a question or
// surface.
type ToolCallDismiss struct {
	Kind         string `json:"kind"`
	ID           string `json:"id"` // equals tool_call_id
	AppID        string `json:"app_id"`
	ChatID       string `json:"chat_id"`
	RunID        string `json:"run_id,omitempty"`
	Turn         string `json:"turn"`
	TurnSequence int64  `json:"turn_sequence,omitempty"`
	Agent        string `json:"agent,omitempty"`
	ToolName     string `json:"tool_name,omitempty"`
	ToolCallID   string `json:"tool_call_id"` // of the question or surface
	CallID       string `json:"call_id,omitempty"`
	Corr         string `json:"corr,omitempty"`
	WorkflowName string `json:"workflow_name"`
}

// Dismiss is the event that ends the display of question or surface e.
func (e *ToolCall) Dismiss() *ToolCallDismiss {
	return &ToolCallDismiss{
		Kind: KindToolCallDismiss, ID: e.ID, AppID: e.AppID, ChatID: e.ChatID, RunID: e.RunID, Turn: e.Turn, TurnSequence: e.TurnSequence,
		Agent: e.Agent, ToolName: e.ToolName, ToolCallID: e.ToolCallID, CallID: e.CallID, Corr: e.Corr, WorkflowName: e.WorkflowName,
	}
}
