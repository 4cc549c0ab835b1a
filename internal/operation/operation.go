// Package operation reads what a tool outside the worker's process wants of the desk of its call,
// and writes what it is told: the same bodies from a Python process and from a NATS service.
package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// MaxOpen is how many operations at the desk a call may have open.
const MaxOpen = 64

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

// Reply is the value of the reply to an operation; each has some of the fields.
type Reply struct {
	ID    string          `json:"id,omitempty"`
	Done  bool            `json:"done"`
	Value json.RawMessage `json:"value,omitempty"`
}

// Refusal is the error of the reply to an operation.
type Refusal struct {
	Code    events.Code `json:"code"`
	Message string      `json:"message"`
}

// Operation is one thing that a call wants of its desk, ready to be done.
type Operation func(ctx context.Context, desk tools.Host) (Reply, error)

// Reader reads the operations of one run of a call. It numbers questions and surfaces without a
// name, in the order in which the tool asked: they reach the desk at the same time. It is not safe
// for concurrent use.
type Reader struct{ questions, surfaces int }

// Read reads an operation: ask, show, dismiss, progress, step_get, step_put, or step, which is one
// of the last two. The error says how the tool broke the protocol.
func (r *Reader) Read(op string, body json.RawMessage) (Operation, error) {
	switch op {
	case "ask":
		return r.ask(body)
	case "show":
		return r.show(body)
	case "progress":
		return reading(body, func(ctx context.Context, desk tools.Host, b progress) (Reply, error) {
			return Reply{}, desk.Progress(ctx, tools.Progress(b))
		})
	case "dismiss":
		return reading(body, func(ctx context.Context, desk tools.Host, b named) (Reply, error) {
			return Reply{}, desk.Dismiss(ctx, b.ID)
		})
	case "step":
		return reading(body, func(ctx context.Context, desk tools.Host, b named) (Reply, error) {
			if b.Value == nil {
				return b.get(ctx, desk)
			}
			return b.put(ctx, desk)
		})
	case "step_get":
		return reading(body, func(ctx context.Context, desk tools.Host, b named) (Reply, error) {
			return b.get(ctx, desk)
		})
	case "step_put":
		return reading(body, func(ctx context.Context, desk tools.Host, b named) (Reply, error) {
			return b.put(ctx, desk)
		})
	default:
		return nil, fmt.Errorf("%q is no operation of a desk", op)
	}
}

func (b named) get(ctx context.Context, desk tools.Host) (Reply, error) {
	value, done, err := desk.StepResult(ctx, b.Name)
	return Reply{Value: value, Done: done}, err
}

func (b named) put(ctx context.Context, desk tools.Host) (Reply, error) {
	value, err := desk.StoreStep(ctx, b.Name, b.Value)
	return Reply{Value: value, Done: true}, err
}

func reading[B any](body json.RawMessage, do func(context.Context, tools.Host, B) (Reply, error)) (Operation, error) {
	var b B
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("parse an operation of the desk: %w", err)
	}
	return func(ctx context.Context, desk tools.Host) (Reply, error) { return do(ctx, desk, b) }, nil
}

func (r *Reader) ask(body json.RawMessage) (Operation, error) {
	var b question
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("parse a question: %w", err)
	}
	number := 0
	if b.Name == "" {
		r.questions++
		number = r.questions
	}
	q := tools.Question{
		Name: b.Name, Number: number, Tool: b.Tool, Input: b.Input, Component: b.Component, Display: b.Display, Payload: b.Payload,
		Schema: b.Schema, Secret: b.Secret, Timeout: seconds(b.Timeout),
	}
	if string(q.Schema) == "null" {
		q.Schema = nil
	}
	return func(ctx context.Context, desk tools.Host) (Reply, error) {
		a, err := desk.Ask(ctx, q)
		return Reply{ID: a.ID, Value: a.Value}, err
	}, nil
}

func (r *Reader) show(body json.RawMessage) (Operation, error) {
	var b question
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("parse what to show: %w", err)
	}
	number := 0
	if b.Name == "" {
		r.surfaces++
		number = r.surfaces
	}
	s := tools.Surface{Name: b.Name, Number: number, Tool: b.Tool, Component: b.Component, Display: b.Display, Payload: b.Payload}
	return func(ctx context.Context, desk tools.Host) (Reply, error) {
		id, err := desk.Show(ctx, s)
		return Reply{ID: id}, err
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

// Refuse turns the error of an operation into what the tool is told, or into an error that
// ends the call: nothing that a tool decides may rest on an answer or a step that could not be reached.
func Refuse(op string, err error) (*Refusal, error) {
	var e *events.Error
	switch {
	case errors.As(err, &e):
		switch e.Code {
		case events.CodeCancelled, events.CodeStateCorrupt, events.CodeInterrupted:
			return nil, err // the end of the turn, whatever the tool would make of it
		default:
			return &Refusal{Code: e.Code, Message: cmp.Or(e.Msg, err.Error())}, nil
		}
	case op == "ask", op == "step", op == "step_get", op == "step_put":
		return nil, err
	default: // it changes the screen alone
		return &Refusal{Code: events.CodeToolError, Message: err.Error()}, nil
	}
}

// NoHost is the answer to every operation of a call whose caller has no desk.
func NoHost(op string) error {
	return &events.Error{Code: events.CodeToolError, Op: op, Msg: "the caller of this tool has no desk: " +
		"it can neither ask people nor show things nor remember steps; a turn of a worker has one"}
}
