package display

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/oneturn/oneturn/events"
)

// call is a call that is displayed: of the tool of a turn or a step, a question, or a surface.
type call struct {
	id       string // tool_call_id
	name     string // by which a client finds its renderer
	args     string // JSON object, with the member _ui
	ui       json.RawMessage
	turn     string // id of the call of its turn
	of       string // of a question or surface: id of the call that has made it
	agent    string
	tool     string
	workflow string
	sequence uint64
	question *question // nil if it needs no answer
	result   string    // JSON, "" as long as it has none
	failed   bool
}

// question is what a client needs to answer a call.
type question struct {
	display   string
	input     bool // a text, as of request_input
	message   string
	schema    json.RawMessage
	expiresAt time.Time
	user      string // the only user that may answer, "" for any
}

// callOf returns the call of a tool_call. A component names the calls of questions and surfaces only: the call of
// a tool with a component carries its name too, and would be rendered twice.
func callOf(e *event) *call {
	c := &call{id: e.ToolCallID, name: e.ToolName, turn: e.turnID(), agent: e.Agent, tool: e.ToolName, workflow: e.WorkflowName}
	if e.InteractionType != events.InteractionAutoTool {
		c.of, c.name = e.call(), cmp.Or(e.component(), e.ToolName)
	}
	c.name = cmp.Or(c.name, "unknown_tool")
	c.ui = events.JSONOf(map[string]any{
		"tool_name": e.ToolName, "component_type": e.ComponentType, "interaction_type": e.InteractionType,
		"display": e.Display, "awaiting_response": e.AwaitingResponse, "workflow_name": e.WorkflowName, "agent": e.Agent,
	})
	c.args = withMember(e.Payload, "_ui", c.ui)
	switch {
	case e.AwaitingResponse:
		c.question = questionOf(e)
	case e.InteractionType != events.InteractionAutoTool:
		c.result = `{"status":"rendered"}`
	}
	return c
}

// questionOf returns the question of a tool_call. Its text is the first member of the payload that is made for people.
func questionOf(e *event) *question {
	q := &question{display: e.Display, input: e.InteractionType == events.InteractionInputRequest, user: e.UserID}
	if e.Answer != nil {
		q.schema, q.expiresAt = e.Answer.Schema, e.Answer.ExpiresAt
	}
	var payload map[string]json.RawMessage
	_ = json.Unmarshal(e.Payload, &payload) // a payload that is not an object has no text
	for _, name := range []string{"prompt", "agent_message", "message", "question", "title", "description"} {
		var text string
		if json.Unmarshal(payload[name], &text) == nil && text != "" {
			q.message = text
			return q
		}
	}
	q.message = "Input needed: " + cmp.Or(e.component(), e.ToolName)
	return q
}

// open reports whether the call is a question that is not decided.
func (c *call) open() bool { return c.question != nil && c.result == "" }

// size is how many bytes the call takes in a snapshot, where its arguments and its result are JSON in JSON.
func (c *call) size() int {
	return 3*len(c.id) + len(c.name) + inJSON(c.args) + inJSON(c.result) + len(c.ui) + 200
}

// inJSON is the length of a text as JSON string, without its quotes.
func inJSON(text string) int {
	n := len(text)
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			n++
		case b < ' ':
			n += 5
		}
	}
	return n
}

// resultOf returns what a response has for result of its call: the payload, of a failure always with status, code and message.
func resultOf(e *event) (result string, failed bool) {
	payload := bytes.TrimSpace(e.Payload)
	if e.Code != "" {
		return failure(e, payload), true
	}
	if len(payload) == 0 || bytes.Equal(payload, []byte("null")) {
		var text string
		_ = json.Unmarshal(e.Content, &text) // "" if there is none
		return string(events.JSONOf(map[string]any{"status": "success", "message": text})), !e.Success
	}
	return string(payload), !e.Success
}

func failure(e *event, payload json.RawMessage) string {
	members := map[string]any{}
	_ = json.Unmarshal(payload, &members) // a payload that is not an object has no members
	var text string
	_ = json.Unmarshal(e.Content, &text) // "" if there is none
	if message, _ := members["message"].(string); message != "" {
		text = message
	}
	short := map[string]any{"status": "error", "code": e.Code, "message": text}
	for _, name := range []string{"errors", "feedback"} {
		if v, ok := members[name]; ok {
			short[name] = v
		}
	}
	return string(events.JSONOf(short))
}

// ended is the result of a question that was decided, by the status of its ack. No event has the answer.
func ended(ack *event) string {
	switch status := ack.status(); {
	case status == events.AckAccepted && ack.Dismissed:
		return `{"status":"cancelled"}`
	case status == events.AckAccepted:
		return `{"status":"answered"}`
	case status == events.AckExpired:
		return `{"status":"expired"}`
	}
	return `{"status":"cancelled"}`
}

// withMember returns a JSON object with one more member; a value that is not an object becomes the member "value".
func withMember(object json.RawMessage, name string, value json.RawMessage) string {
	object = bytes.TrimSpace(object)
	quoted := `"` + name + `":`
	if len(object) < 2 || object[0] != '{' {
		if len(object) == 0 {
			object = json.RawMessage("null")
		}
		return `{"value":` + string(object) + `,` + quoted + string(value) + `}`
	}
	if bytes.Contains(object, []byte(quoted)) { // at any depth: it is not worth a parse to find out
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) == nil {
			members[name] = value
			return string(events.JSONOf(members))
		}
	}
	inside := bytes.TrimSpace(object[1 : len(object)-1])
	if len(inside) == 0 {
		return `{` + quoted + string(value) + `}`
	}
	return `{` + string(inside) + `,` + quoted + string(value) + `}`
}
