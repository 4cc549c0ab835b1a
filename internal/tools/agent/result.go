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
	fail := func(code events.Code, msg string) (json.RawMessage, error) {
		return nil, &events.Error{Code: code, Op: op, Msg: msg}
	}
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
	switch {
	case a.Refusal != "":
		return fail(events.CodeUserError, "the model refuses: "+t.client.Clean(a.Refusal))
	case a.Finish == "content_filter":
		return fail(events.CodeUserError, "the endpoint's filter has stopped the answer")
	case a.Finish == "error":
		return fail(events.CodeToolError, "the endpoint reports that the model failed while it answered")
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
