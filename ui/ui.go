// Package ui is how a Go tool talks with people: it asks ([Ask], [Input]), shows ([Show],
// [Dismiss]) and says how far it is ([Progress]). All of it takes the context that the tool was
// called with.
//
// A question may stay open for days. The tool waits for its answer as for any call, and the
// worker need not: after a while it parks the turn, that is, it ends this run of the tool with
// [ErrParked] and keeps nothing of it. The answer runs the tool again, on whatever worker there
// is, and the same Ask returns what the person said. So
//
//   - return the error of Ask as it is, and do nothing after ErrParked: nobody listens;
//   - code before an open question may run again: what has an effect there belongs in a step
//     ([github.com/oneturn/oneturn/turn.Step]), and code after the last answer never runs twice
//     if the effect of the tool is replay, which it is for tools with a component;
//   - a run that is repeated has to ask the same questions in the same order, or to name them:
//     questions that are asked at the same time, in a loop over something that changes, or
//     inside a step need a [Question.Name].
package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// What ends the wait for an answer. Compare with [errors.Is].
var (
	// ErrExpired says that the time for an answer has passed. A tool may go on without one; if
	// it returns the error, the turn ends as expired.
	ErrExpired error = events.ErrExpired
	// ErrParked says that this run of the tool ends here and another one gets the answer. It is
	// the cause of the context as well.
	ErrParked = tools.ErrParked
)

// Question is what [Ask] asks. The zero value asks with the component of the tool's binding.
type Question struct {
	// Name tells the question from the others of the call. Without one it is numbered, in the
	// order in which the call asks.
	Name string
	// Tool is the id of the UI tool, the tool_name of the event. Empty: that of the call.
	Tool string
	// Component that shows it. Empty: that of Tool's binding, else Tool.
	Component string
	// Display is inline, artifact, view or composer. Empty: that of Tool's binding, else inline.
	Display string
	// Payload is what the component shows: a struct, map or [json.RawMessage] that becomes a JSON
	// object.
	Payload any
	// Schema (JSON Schema) that an answer has to fit. Nil: that of the type that Ask returns. An
	// answer that does not fit is refused, with the reasons, and the question stays open.
	Schema json.RawMessage
	// Timeout is how long an answer is waited for, from when the question was first asked. 0 is
	// as long as the turn may live.
	Timeout time.Duration
	// Secret keeps the answer out of records, events, logs and the result of the tool.
	Secret bool
}

// Ask puts a question to a person and returns the answer as a T. The answer was checked against
// the question's schema, by default that of T: a struct takes no properties that it does not
// have, and needs those without omitempty. T can be any, or [json.RawMessage], to get whatever
// was answered; numbers in interfaces are json.Number.
//
// The error is [ErrExpired] after [Question.Timeout], [ErrParked] when another run will get the
// answer, and else something that ends the turn, such as a question that a run before had asked
// otherwise. An answer never gives an error by itself: "no" is a value.
func Ask[T any](ctx context.Context, q Question) (T, error) {
	const op = "ui.Ask"
	var answer T
	payload, err := object(op, q.Payload)
	if err != nil {
		return answer, err
	}
	schema := q.Schema
	if schema == nil {
		if schema, err = schemaOf[T](); err != nil {
			return answer, mistake(op, "give the question a Schema", err)
		}
	}
	value, err := ask(ctx, op, tools.Question{
		Name: q.Name, Tool: q.Tool, Component: q.Component, Display: q.Display,
		Payload: payload, Schema: schema, Timeout: q.Timeout, Secret: q.Secret,
	})
	if err != nil {
		return answer, err
	}
	return decode[T](op, value)
}

// An Option says something about an [Input].
type Option func(q *tools.Question)

// Masked makes an input one for a secret: what is typed is not shown, and kept as
// [Question.Secret] says.
func Masked(q *tools.Question) { q.Secret = true }

// Named gives an input a name, as [Question.Name].
func Named(name string) Option { return func(q *tools.Question) { q.Name = name } }

// Within bounds the wait for an input, as [Question.Timeout].
func Within(d time.Duration) Option { return func(q *tools.Question) { q.Timeout = d } }

// Input asks for a line of text, where the person types to the agent. Frontends send it alone, or
// in an object as its text, response, value, input, user_input or content; anything else comes as
// JSON. Errors are those of [Ask].
func Input(ctx context.Context, prompt string, options ...Option) (string, error) {
	const op = "ui.Input"
	q := tools.Question{Input: true}
	for _, option := range options {
		option(&q)
	}
	var err error
	if q.Payload, err = object(op, map[string]any{"prompt": prompt, "password": q.Secret}); err != nil {
		return "", err
	}
	value, err := ask(ctx, op, q)
	if err != nil {
		return "", err
	}
	return typed(value), nil
}

// typed is the text of an answer to an input; an answer that has none is its JSON, so that nothing
// of it is lost.
func typed(value json.RawMessage) string {
	if tree, err := events.Decode(value); err == nil {
		if text, ok := events.InputText(tree); ok {
			return text
		}
	}
	return string(value)
}

// Surface is what [Show] shows. The fields are those of a [Question].
type Surface struct {
	Name, Tool, Component, Display string
	Payload                        any
}

// Show puts something on the screen that nobody answers, and returns its id, for [Dismiss]. A
// run that is repeated shows nothing twice.
func Show(ctx context.Context, s Surface) (id string, err error) {
	const op = "ui.Show"
	desk, err := numbered(ctx, op, s.Name)
	if err != nil {
		return "", err
	}
	payload, err := object(op, s.Payload)
	if err != nil {
		return "", err
	}
	return desk.Show(ctx, tools.Surface{Name: s.Name, Tool: s.Tool, Component: s.Component, Display: s.Display, Payload: payload})
}

// Dismiss takes what [Show] has shown from the screen.
func Dismiss(ctx context.Context, id string) error {
	desk, err := tools.HostFrom(ctx, "ui.Dismiss")
	if err != nil {
		return err
	}
	return desk.Dismiss(ctx, id)
}

// Progress says how far the tool is: percent from 0 to 100, or less than 0 if that is not known.
// It reaches who looks at the chat now, is not stored, and is thinned out if it comes often.
func Progress(ctx context.Context, percent float64, message string) error {
	desk, err := tools.HostFrom(ctx, "ui.Progress")
	if err != nil {
		return err
	}
	return desk.Progress(ctx, tools.Progress{Percent: percent, Message: message})
}

func ask(ctx context.Context, op string, q tools.Question) (json.RawMessage, error) {
	desk, err := numbered(ctx, op, q.Name)
	if err != nil {
		return nil, err
	}
	answer, err := desk.Ask(ctx, q)
	return answer.Value, err
}

// numbered returns the desk for something that is numbered if it has no name. A step that is done
// is not entered again, so nothing inside it may count.
func numbered(ctx context.Context, op, name string) (tools.Host, error) {
	desk, err := tools.HostFrom(ctx, op)
	if err != nil {
		return nil, err
	}
	if step := tools.StepFrom(ctx); step != "" && name == "" {
		return nil, mistake(op, fmt.Sprintf("inside step %q it needs a Name: a later run does not enter the step, and would number what follows otherwise", step), nil)
	}
	return desk, nil
}

// object is what a component gets: a JSON object.
func object(op string, payload any) (json.RawMessage, error) {
	if payload == nil {
		return json.RawMessage("{}"), nil
	}
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, mistake(op, fmt.Sprintf("the payload of type %T has no JSON form", payload), err)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, mistake(op, fmt.Sprintf("the payload of type %T is no JSON object: use a struct or a map", payload), nil)
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

func decode[T any](op string, value json.RawMessage) (T, error) {
	var v T
	if raw, ok := any(&v).(*json.RawMessage); ok {
		*raw = value
		return v, nil
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return v, mistake(op, fmt.Sprintf("the answer does not fit %T: say in Schema what it has to look like", v), nil)
	}
	return v, nil
}

// mistake is an error that the author of the tool mends.
func mistake(op, msg string, err error) error {
	return &events.Error{Code: events.CodeToolError, Op: op, Msg: msg, Err: err}
}
