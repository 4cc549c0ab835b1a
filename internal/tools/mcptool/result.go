package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/excerpt"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// From the answer of a server to the result or the error of the call: value (of a step: step_result.go), result and failure
// for results; refusal and protocolError for errors of the protocol.

// value returns the value of a result: its structured content; else of its one text the JSON
// object or array that it is, or the text as a string; else the list of its contents, null if
// there are none.
func value(r *mcp.CallToolResult, exact json.RawMessage) (json.RawMessage, error) {
	if exact != nil {
		return exact, nil
	}
	if r.StructuredContent != nil {
		return json.Marshal(r.StructuredContent) //nolint:wrapcheck // the caller adds the context
	}
	switch len(r.Content) {
	case 0:
		return json.RawMessage("null"), nil
	case 1:
		text, ok := r.Content[0].(*mcp.TextContent)
		if !ok {
			break
		}
		trimmed := strings.TrimSpace(text.Text)
		if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
			if _, err := events.Decode([]byte(trimmed)); err == nil {
				return json.RawMessage(trimmed), nil
			}
		}
		return encode(text.Text)
	}
	return encode(r.Content)
}

// encode writes JSON without escapes for HTML.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the context
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// result makes the tool's result of what the server answered.
func (t *Tool) result(u *activeCall, pin *pinned, r *mcp.CallToolResult) (tools.Result, error) {
	op := u.op
	if r.IsError {
		return tools.Result{}, failure(u, r)
	}
	read := value
	if u.call.Program {
		read = stepValue
	}
	out, err := read(r, u.structured())
	if err != nil {
		return tools.Result{}, tools.Returned(failf(events.CodeToolError, op, "its result has no JSON form: %v", err))
	}
	if most := t.server.o.MaxResult; len(out) > most {
		return tools.Result{}, tools.Returned(failf(events.CodeTooLarge, op, "its result has %d bytes, over the limit of %d", len(out), most))
	}
	var violations []model.Violation
	if pin.output != nil {
		out, violations, err = pin.output.ConformJSON(out)
	} else {
		_, err = events.Decode(out)
	}
	switch {
	case err != nil:
		return tools.Result{}, tools.Returned(&events.Error{Code: events.CodeToolError, Op: op, Msg: "its result cannot be used: " + excerpt.Line(err.Error(), maxText), Err: err})
	case len(violations) > 0:
		return tools.Result{}, tools.Returned(failf(events.CodeToolError, op, "its result does not fit the output schema of the server: %s", violationsText(violations)))
	}
	return tools.Result{Value: u.link.secrets().JSON(out), Skill: u.redact(skillOf(r))}, nil
}

// violationsText states all that is wrong with a value, without any of it.
func violationsText(violations []model.Violation) string {
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = v.String()
	}
	return strings.Join(texts, "; ")
}

// failure is the error of a result with isError.
func failure(u *activeCall, r *mcp.CallToolResult) error {
	var texts []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	if u.call.Program && len(texts) > 1 { // a program halts with the first
		texts = texts[:1]
	}
	e := &events.Error{Code: events.CodeToolError, Op: u.op, Msg: excerpt.Line(u.redact(strings.Join(texts, "\n")), maxText)}
	if e.Msg == "" {
		e.Msg = "the server reports a failure without a reason"
	}
	if sent, ok := r.Meta[MetaCode].(string); ok {
		switch code := events.Code(sent); code {
		case events.CodeBadArgs, events.CodeUserError:
			e.Code = code
		default: // tool_error, and codes that a server may not choose
		}
	}
	if again, _ := r.Meta[MetaRetryable].(bool); again {
		wait, _ := r.Meta[MetaRetryAfter].(float64)
		return tools.RetryAfter(e, target.RetrySeconds(wait))
	}
	return e
}

// refusal is the meaning of an error of the protocol for a call: the server has the tool, and did
// not run it.
func refusal(u *activeCall, err *jsonrpc.Error) error {
	code := events.CodeToolError
	if err.Code == jsonrpc.CodeInvalidParams {
		code = events.CodeBadArgs
	}
	return &events.Error{Code: code, Op: u.op, Msg: fmt.Sprintf("the server refuses the call (%d): %s", err.Code, excerpt.Line(u.redact(err.Message), maxText))}
}

// protocolError returns the error of the protocol that the server has sent, nil if err is another
// one. The SDK reports its own view of a connection in errors of the same type: their texts
// identify them. A server that sends them is not trusted to have refused the call.
func protocolError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Message {
	case "rejected by transport", "server is closing", "client is closing":
		return nil
	}
	return e
}
