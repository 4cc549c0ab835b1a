package python

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tools"
)

// maxOperations is how many operations at the desk a call may have open.
const maxOperations = 64

// question is the body of an ask and, without its last fields, of a show.
type question struct {
	Tool      string          `json:"tool"`
	Name      string          `json:"name"`
	Component string          `json:"component"`
	Display   string          `json:"display"`
	Payload   json.RawMessage `json:"payload"`
	Input     bool            `json:"input"`
	Schema    json.RawMessage `json:"schema"`
	Secret    bool            `json:"secret"`
	Timeout   float64         `json:"timeout"` // seconds
}

// progress is the body of a progress.
type progress struct {
	Percent float64 `json:"percent"`
	Message string  `json:"message"`
	Tool    string  `json:"tool"`
	Corr    string  `json:"corr"`
}

// named is the body of a dismiss (id), a step_get and a step_put.
type named struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// answered is the value of the reply to an operation; each has some of the fields.
type answered struct {
	ID    string          `json:"id,omitempty"`
	Done  bool            `json:"done"`
	Value json.RawMessage `json:"value,omitempty"`
}

// refusal is the error of the reply to an operation.
type refusal struct {
	Code    events.Code `json:"code"`
	Message string      `json:"message"`
}

// fault ends a call whose process does not keep to the protocol, or whose desk is out of order.
type fault struct{ error }

func (f fault) Unwrap() error { return f.error }

// operation is one thing that a call wants of its desk, ready to be done.
type operation func(ctx context.Context, desk tools.Desk) (answered, error)

// operation reads a frame. Questions and surfaces without a name are numbered here, where they
// come in the order in which the tool asked: they reach the desk at the same time.
func (p *pending) operation(r *reply) (operation, error) {
	switch r.Op {
	case "ask":
		return p.ask(r.Body)
	case "show":
		return p.show(r.Body)
	case "progress":
		return reading(r.Body, func(ctx context.Context, desk tools.Desk, b progress) (answered, error) {
			return answered{}, desk.Progress(ctx, tools.Progress(b))
		})
	case "dismiss":
		return reading(r.Body, func(ctx context.Context, desk tools.Desk, b named) (answered, error) {
			return answered{}, desk.Dismiss(ctx, b.ID)
		})
	case "step_get":
		return reading(r.Body, func(ctx context.Context, desk tools.Desk, b named) (answered, error) {
			value, done, err := desk.StepResult(ctx, b.Name)
			return answered{Value: value, Done: done}, err
		})
	case "step_put":
		return reading(r.Body, func(ctx context.Context, desk tools.Desk, b named) (answered, error) {
			value, err := desk.StoreStep(ctx, b.Name, b.Value)
			return answered{Value: value, Done: true}, err
		})
	default:
		return nil, fmt.Errorf("%q is no operation of a desk", r.Op)
	}
}

func reading[B any](body json.RawMessage, do func(context.Context, tools.Desk, B) (answered, error)) (operation, error) {
	var b B
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("parse an operation of the desk: %w", err)
	}
	return func(ctx context.Context, desk tools.Desk) (answered, error) { return do(ctx, desk, b) }, nil
}

func (p *pending) ask(body json.RawMessage) (operation, error) {
	var b question
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("parse a question: %w", err)
	}
	number := 0
	if b.Name == "" {
		p.questions++
		number = p.questions
	}
	q := tools.Question{
		Name: b.Name, Number: number, Tool: b.Tool, Input: b.Input, Component: b.Component, Display: b.Display, Payload: b.Payload,
		Schema: b.Schema, Secret: b.Secret, Timeout: seconds(b.Timeout),
	}
	if string(q.Schema) == "null" {
		q.Schema = nil
	}
	return func(ctx context.Context, desk tools.Desk) (answered, error) {
		a, err := desk.Ask(ctx, q)
		return answered{ID: a.ID, Value: a.Value}, err
	}, nil
}

func (p *pending) show(body json.RawMessage) (operation, error) {
	var b question
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("parse what to show: %w", err)
	}
	number := 0
	if b.Name == "" {
		p.surfaces++
		number = p.surfaces
	}
	s := tools.Surface{Name: b.Name, Number: number, Tool: b.Tool, Component: b.Component, Display: b.Display, Payload: b.Payload}
	return func(ctx context.Context, desk tools.Desk) (answered, error) {
		id, err := desk.Show(ctx, s)
		return answered{ID: id}, err
	}, nil
}

// seconds returns a time that a frame gives; what is too long for a [time.Duration] is the longest.
func seconds(s float64) time.Duration {
	switch {
	case !(s > 0):
		return 0
	case s >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}

// refuse turns the error of an operation into what the tool is told, or into a fault: nothing
// that a tool decides may rest on an answer or a step that could not be reached.
func refuse(op string, err error) (*refusal, error) {
	var e *events.Error
	switch {
	case errors.As(err, &e):
		switch e.Code {
		case events.CodeCancelled, events.CodeStateCorrupt, events.CodeInterrupted:
			return nil, err // the end of the turn, whatever the tool would make of it
		default:
			return &refusal{Code: e.Code, Message: cmp.Or(e.Msg, err.Error())}, nil
		}
	case op == "ask", op == "step_get", op == "step_put":
		return nil, err
	default: // it changes the screen alone
		return &refusal{Code: events.CodeToolError, Message: err.Error()}, nil
	}
}

// noDesk is the answer to every operation of a call whose caller has no desk.
func noDesk(op string) error {
	return &events.Error{Code: events.CodeToolError, Op: op, Msg: "the caller of this tool has no desk: " +
		"it can neither ask people nor show things nor remember steps; a turn of a worker has one"}
}
