package oneturn

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
)

// TurnID is the identity of a turn.
type TurnID struct {
	App  string // tenant, "default" if empty
	Chat string
	Run  string // run id, empty if the turn has none
	Turn string // turn key: unique in its chat and run
}

// check reports an id that identifies no turn, with the field to set.
func (id *TurnID) check() error {
	switch {
	case id.Chat == "":
		return &events.Error{Code: events.CodeBadArgs, Msg: "the turn has no chat: set TurnID.Chat"}
	case id.Turn == "":
		return &events.Error{Code: events.CodeBadArgs, Msg: "the turn has no key: set TurnID.Turn, unique in its chat"}
	default:
		return nil
	}
}

// Turn is what a producer publishes: an agent has finished with JSON that calls for a tool. Data and
// ContextVariables may be any values that encoding/json can write.
type Turn struct {
	TurnID
	Workflow         string
	Agent            string
	Model            string
	Data             any            // the agent's structured output
	UserID           string         // the user that the turn is for, may be empty
	TurnSequence     int64          // position in the chat, 0 if unknown
	ContextVariables map[string]any // snapshot of the context variables, nil for none
	CorrectionOf     string         // turn key of the turn that this one corrects, may be empty
	// Depth is the number of programs that the turn is in, for a tool in another process that publishes it: the Oneturn-Depth
	// that its call came with. With the context of a Go tool the client knows it. 0 for a turn that no program has caused.
	Depth int
}

// Cancel requests the end of a turn, see [Client.Cancel].
type Cancel struct {
	TurnID
	Workflow string // of the turn, needed for the subject
	Reason   string // shown in the response, may be empty
	UserID   string // the user that cancels, may be empty
	// ToolCallID is the tool_call_id of any event of the turn. It identifies the turn in place of its key,
	// even if that key was used before. May be empty.
	ToolCallID string
}

// Response is the end of a turn.
type Response struct {
	TurnID
	ToolCallID string
	Workflow   string
	Agent      string
	Tool       string
	// Success is false if the turn has no result, and Code has the reason, or if Code is empty and the status of
	// the result itself is a failure: {"status": "error"}.
	Success bool
	Content string      // for the model: the result or the error as text
	Payload any         // the tool's result as decoded JSON, or an object that events.BlobOf reads
	Code    events.Code // why the turn has no result, empty if it has one
	// Attempts is how often the worker that stored the response entered the tool: 0 if another worker has ended
	// the turn, also if its tool had been entered before. See docs/wire-contract.md.
	Attempts int
	Duration time.Duration // in the tool, without waiting for limits or processes; to the millisecond
	// Correcting is set if the agent's output could not be used and a model is asked to correct it: another turn follows, see
	// [events.Text.CorrectedTurn]. [Client.AwaitMessage] waits for the last one.
	Correcting bool
	// ContextKeys are the context variables that the tool changed.
	ContextKeys []string
}

// event returns the turn as it is published: its data is what a worker will decode, any Go value as
// encoding/json writes it.
func (t *Turn) event() (*events.StructuredOutputReady, error) {
	e := &events.StructuredOutputReady{
		TurnID: events.TurnID(t.TurnID), Workflow: events.Name(t.Workflow), Agent: events.Name(t.Agent), Model: events.Name(t.Model),
		AutoToolMode: true, UserID: t.UserID, TurnSequence: t.TurnSequence, CorrectionOf: t.CorrectionOf,
	}
	var err error
	if e.Data, err = tree(t.Data); err != nil {
		return nil, fmt.Errorf("publish turn %.80q: its data has no JSON form: %w", t.Turn, err)
	}
	if t.ContextVariables == nil {
		return e, nil
	}
	vars, err := tree(t.ContextVariables)
	if err != nil {
		return nil, fmt.Errorf("publish turn %.80q: its context variables have no JSON form: %w", t.Turn, err)
	}
	e.ContextVariables, _ = vars.(map[string]any)
	return e, nil
}

// turnOf is the opposite of [Turn.event].
func turnOf(e *events.StructuredOutputReady) *Turn {
	return &Turn{
		TurnID: TurnID(e.TurnID), Workflow: e.Workflow, Agent: e.Agent, Model: e.Model, Data: e.Data,
		UserID: e.UserID, TurnSequence: e.TurnSequence, ContextVariables: e.ContextVariables, CorrectionOf: e.CorrectionOf,
	}
}

func tree(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the value
	}
	return events.Decode(data)
}

func tenant(app string) string { return cmp.Or(app, events.DefaultApp) }

func parseResponse(body []byte) (*Response, error) {
	e, err := events.ReadResponse(body)
	if err != nil {
		return nil, err
	}
	return &Response{
		TurnID: TurnID{App: e.AppID, Chat: e.ChatID, Run: e.RunID, Turn: e.Turn}, ToolCallID: e.ToolCallID,
		Workflow: e.WorkflowName, Agent: e.Agent, Tool: e.ToolName, Success: e.Success,
		Content: e.Content, Payload: e.Payload, Code: e.Code, Attempts: e.Attempts,
		Duration: time.Duration(e.DurationMS) * time.Millisecond, ContextKeys: e.ContextKeys, Correcting: e.Correcting,
	}, nil
}
