package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Display is where frontends display a component.
type Display string

// The places of components.
const (
	DisplayInline   Display = events.DisplayInline   // among the messages
	DisplayArtifact Display = events.DisplayArtifact // next to the messages
	DisplayView     Display = events.DisplayView     // instead of the messages
	DisplayComposer Display = events.DisplayComposer // in place of the line that the user writes in
)

// Question is what [Ask] asks. The zero value asks with the component of the tool's binding.
type Question struct {
	// Name distinguishes the question from the others of the call. Without a name it is numbered,
	// in the order in which the call asks.
	Name string
	// Tool is the id of the UI tool, the tool_name of the event. Empty: the name of the call.
	Tool string
	// Component that displays the question. Empty: the component of Tool's binding, else Tool.
	Component string
	// Display is where the component is displayed. Empty: as Tool's binding specifies, else [DisplayInline].
	Display Display
	// Payload is what the component displays: a struct, map or [json.RawMessage] that becomes a
	// JSON object.
	Payload any
	// Schema (JSON Schema) that an answer has to match. Nil: the schema of the type that Ask returns. An
	// answer that does not match is refused, with the reasons, and the question stays open.
	Schema json.RawMessage
	// Timeout limits the wait for an answer, from when the question was first asked. 0: as long
	// as the turn may live.
	Timeout time.Duration
	// Secret keeps the answer out of records, events, logs and the result of the tool.
	Secret bool
}

// Ask asks a person and returns the answer as a T. The answer was validated against the
// question's schema, by default the schema of T: a struct allows no other properties than its own and
// requires those without omitempty. T can be any or [json.RawMessage] to get any answer; numbers
// in interfaces are json.Number.
//
// The error is [ErrExpired] after [Question.Timeout], [ErrParked] when another run will get the
// answer, and otherwise one that ends the turn, for example because an earlier run asked a
// different question here. An answer itself never gives an error: "no" is a value.
func Ask[T any](ctx context.Context, q Question) (T, error) {
	const op = "tool.Ask"
	var answer T
	payload, err := object(op, q.Payload)
	if err != nil {
		return answer, err
	}
	schema := q.Schema
	if schema == nil {
		if schema, err = schemaOf[T](); err != nil {
			return answer, authorError(op, "give the question a Schema", err)
		}
	}
	value, err := ask(ctx, op, tools.Question{
		Name: q.Name, Tool: q.Tool, Component: q.Component, Display: string(q.Display),
		Payload: payload, Schema: schema, Timeout: q.Timeout, Secret: q.Secret,
	})
	if err != nil {
		return answer, err
	}
	if err := decode(value, &answer); err != nil { // the text of err may contain the answer
		return answer, authorError(op, fmt.Sprintf("the answer does not match type %T: describe its form in Schema", answer), nil)
	}
	return answer, nil
}

// InputOptions are options of [Input]. The zero value asks a numbered question without a time
// limit.
type InputOptions struct {
	Name    string        // as Question.Name
	Timeout time.Duration // as Question.Timeout
	Secret  bool          // as Question.Secret; the typed text is not displayed
}

// Input asks for a line of text, where the person types to the agent. Frontends send the text
// alone, or in an object as its text, response, value, input, user_input or content; any other
// answer is returned as JSON. It returns the same errors as [Ask].
func Input(ctx context.Context, prompt string, o InputOptions) (string, error) {
	const op = "tool.Input"
	payload, err := object(op, map[string]any{"prompt": prompt, "password": o.Secret})
	if err != nil {
		return "", err
	}
	value, err := ask(ctx, op, tools.Question{Input: true, Name: o.Name, Timeout: o.Timeout, Secret: o.Secret, Payload: payload})
	if err != nil {
		return "", err
	}
	return typedText(value), nil
}

// typedText returns the text of an answer to an input, or the JSON of an answer without one, so
// that nothing of it is lost.
func typedText(value json.RawMessage) string {
	if tree, err := events.Decode(value); err == nil {
		if text, ok := events.InputText(tree); ok {
			return text
		}
	}
	return string(value)
}

func ask(ctx context.Context, op string, q tools.Question) (json.RawMessage, error) {
	host, err := numberedHost(ctx, op, q.Name)
	if err != nil {
		return nil, err
	}
	answer, err := host.Ask(ctx, q)
	return answer.Value, err
}

// numberedHost returns the host for a question or surface that is numbered if it has no name.
// Inside a step it needs one: later runs do not enter the step and would number what follows
// differently.
func numberedHost(ctx context.Context, op, name string) (tools.Host, error) {
	host, err := tools.HostFrom(ctx, op)
	if err != nil {
		return nil, err
	}
	if step := tools.StepFrom(ctx); step != "" && name == "" {
		return nil, authorError(op, fmt.Sprintf("inside step %q it needs a Name: a later run does not enter the step, and would number what follows differently", step), nil)
	}
	return host, nil
}

// object encodes what a component gets: a JSON object.
func object(op string, payload any) (json.RawMessage, error) {
	if payload == nil {
		return json.RawMessage("{}"), nil
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, authorError(op, fmt.Sprintf("the payload of type %T has no JSON form", payload), err)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, authorError(op, fmt.Sprintf("the payload of type %T is not a JSON object: use a struct or a map", payload), nil)
	}
	return data, nil
}

func schemaOf[T any]() (json.RawMessage, error) {
	switch any(new(T)).(type) {
	case *json.RawMessage, *any:
		return nil, nil
	}
	return tools.SchemaOf[T]()
}

// decode decodes JSON into v; numbers in interfaces become json.Number.
func decode[T any](data json.RawMessage, v *T) error {
	if raw, ok := any(v).(*json.RawMessage); ok {
		*raw = data
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v) //nolint:wrapcheck // the caller adds what it is about
}
