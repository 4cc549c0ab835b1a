// Package operation decodes the operations that a tool outside the worker's process requests of the host of its call,
// and encodes the replies: a Python process and a NATS service use the same bodies. [Reader.Read] makes an
// [Operation] of a body, the caller runs it with a [tools.Host], and [Refuse] makes a [Refusal] of its error.
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

// MaxOpen is how many operations of its host a call may have open.
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

// Operation is one operation that a call requests of its host, ready to run.
type Operation func(ctx context.Context, host tools.Host) (Reply, error)

// Reader reads the operations of one run of a call. It numbers questions and surfaces without a
// name, in the order in which the tool asked: they reach the host at the same time. It is not safe
// for concurrent use.
type Reader struct{ questions, surfaces int }

// Read reads an operation: ask, show, dismiss, progress, step_get, step_put, or step, which is one
// of the last two. The error is how the tool violated the protocol.
func (r *Reader) Read(op string, body json.RawMessage) (Operation, error) {
	switch op {
	case "ask":
		return r.ask(body)
	case "show":
		return r.show(body)
	case "progress":
		return reading(body, func(ctx context.Context, host tools.Host, b progress) (Reply, error) {
			return Reply{}, host.Progress(ctx, tools.Progress(b))
		})
	case "dismiss":
		return reading(body, func(ctx context.Context, host tools.Host, b named) (Reply, error) {
			return Reply{}, host.Dismiss(ctx, b.ID)
		})
	case "step":
		return reading(body, func(ctx context.Context, host tools.Host, b named) (Reply, error) {
			if b.Value == nil {
				return b.get(ctx, host)
			}
			return b.put(ctx, host)
		})
	case "step_get":
		return reading(body, func(ctx context.Context, host tools.Host, b named) (Reply, error) {
			return b.get(ctx, host)
		})
	case "step_put":
		return reading(body, func(ctx context.Context, host tools.Host, b named) (Reply, error) {
			return b.put(ctx, host)
		})
	default:
		return nil, fmt.Errorf("unknown operation %q of a host", op)
	}
}

func (b named) get(ctx context.Context, host tools.Host) (Reply, error) {
	value, done, err := host.StepResult(ctx, b.Name)
	return Reply{Value: value, Done: done}, err
}

func (b named) put(ctx context.Context, host tools.Host) (Reply, error) {
	value, err := host.StoreStep(ctx, b.Name, b.Value)
	return Reply{Value: value, Done: true}, err
}

func reading[B any](body json.RawMessage, do func(context.Context, tools.Host, B) (Reply, error)) (Operation, error) {
	var b B
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("parse an operation of the host: %w", err)
	}
	return func(ctx context.Context, host tools.Host) (Reply, error) { return do(ctx, host, b) }, nil
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
	return func(ctx context.Context, host tools.Host) (Reply, error) {
		a, err := host.Ask(ctx, q)
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
	return func(ctx context.Context, host tools.Host) (Reply, error) {
		id, err := host.Show(ctx, s)
		return Reply{ID: id}, err
	}, nil
}

// seconds converts a time of a frame; one that is too long for a [time.Duration] becomes the longest.
func seconds(s float64) time.Duration {
	switch {
	case !(s > 0):
		return 0
	case s >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}

// Refuse turns the error of an operation into the refusal that the tool gets, or into an error that
// ends the call: no decision of a tool may depend on an answer or a step that could not be read.
func Refuse(op string, err error) (*Refusal, error) {
	var e *events.Error
	switch {
	case errors.As(err, &e):
		switch e.Code {
		case events.CodeCancelled, events.CodeStateCorrupt, events.CodeInterrupted:
			return nil, err // the turn ends, whatever the tool would do
		default:
			return &Refusal{Code: e.Code, Message: cmp.Or(e.Msg, err.Error())}, nil
		}
	case op == "ask", op == "step", op == "step_get", op == "step_put":
		return nil, err
	default: // it only changes what is displayed
		return &Refusal{Code: events.CodeToolError, Message: err.Error()}, nil
	}
}

// NoHost is the error of every operation of a call whose caller has no host.
func NoHost(op string) error {
	return &events.Error{Code: events.CodeToolError, Op: op, Msg: "no host: " +
		"the caller of this tool supports no questions, surfaces, progress or steps; a turn of a worker does"}
}
