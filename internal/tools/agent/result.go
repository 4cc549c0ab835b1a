package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// isBlank reports whether a model has answered, and with nothing.
func isBlank(a Answer) bool {
	return strings.TrimSpace(a.Content) == "" && a.Refusal == "" && (a.Finish == "" || a.Finish == "stop")
}

// result is the answer of the model, as JSON: a string without an output schema.
func (t *Tool) result(op string, a Answer, output json.RawMessage) (json.RawMessage, error) {
	unusable := func(msg string) (json.RawMessage, error) {
		return nil, tools.Returned(&events.Error{Code: events.CodeToolError, Op: op, Msg: msg})
	}
	content, open := a.Content, false
	if !jsontext.Value(content).IsValid() {
		content, open = agentjson.WithoutReasoning(content)
	}
	if len(content) < len(a.Content) {
		content = strings.TrimSpace(content)
	}
	if err := t.refusal(op, a); err != nil {
		return nil, err
	}
	switch {
	case a.Finish == "length":
		return unusable(fmt.Sprintf("the model's answer was cut off after %d tokens: raise max_tokens, or ask for less", a.Usage.Completion))
	case agentjson.Incomplete(a.Finish) != "":
		return unusable("the model's answer is not complete: " + agentjson.Incomplete(a.Finish))
	case open:
		return unusable("the model's answer ends inside its reasoning: raise max_tokens, or ask for less")
	case strings.TrimSpace(content) == "":
		return unusable("the model's answer is empty")
	case output == nil:
		value, err := json.Marshal(t.client.Redact(content))
		if err != nil { // a string has a JSON form
			return unusable("the model's answer has no JSON form")
		}
		return value, nil
	case jsontext.Value(content).IsValid():
		return t.client.RedactJSON(json.RawMessage(content)), nil
	}
	found, err := agentjson.Extract(a.Content, agentjson.Options{Fits: fits(output), FinishReason: a.Finish}) // without a schema, models wrap it in prose
	if err == nil {
		return t.client.RedactJSON(found.JSON), nil
	}
	return unusable("the model's answer is not the JSON that was asked for" + reason(err) +
		": ask it again, for one JSON value that fits the schema and nothing else")
}

// refusal is the error of a model that does not answer, nil if it does.
func (t *Tool) refusal(op string, a Answer) error {
	switch {
	case a.Refusal != "":
		return &events.Error{Code: events.CodeUserError, Op: op, Msg: "the model refuses: " + t.client.Clean(a.Refusal)}
	case a.Finish == "content_filter":
		return &events.Error{Code: events.CodeUserError, Op: op, Msg: "the endpoint's filter has stopped the answer"}
	case a.Finish == "error":
		return &events.Error{Code: events.CodeToolError, Op: op, Msg: "the endpoint reports that the model failed while it answered"}
	}
	return nil
}

// whole is the answer of the model with what the endpoint reports about it, as JSON.
func (t *Tool) whole(op string, a Answer) (json.RawMessage, error) {
	if err := t.refusal(op, a); err != nil {
		return nil, err
	}
	value, err := json.Marshal(tools.Completion{Content: t.client.Redact(a.Content), FinishReason: t.client.Clean(a.Finish), Usage: a.Usage})
	if err != nil { // texts and numbers have a JSON form
		return nil, &events.Error{Code: events.CodeToolError, Op: op, Msg: "the model's answer has no JSON form"}
	}
	return value, nil
}

// fits returns a function that checks an object against the schema of the answer, which is compiled for a text with
// several objects only.
func fits(schema json.RawMessage) func(map[string]any) bool {
	compiled := sync.OnceValue(func() *model.Value {
		v, _ := model.CompileExternalValue("answer", schema)
		return v
	})
	return func(object map[string]any) bool {
		v := compiled()
		return v == nil || len(v.Violations(object)) == 0
	}
}

// reason is why an answer has no object, without anything that the model wrote.
func reason(err error) string {
	var e *agentjson.Error
	if !errors.As(err, &e) || e.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s at line %d, column %d)", e.Code, e.Line, e.Column)
}
