package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrNoTerminal is the cause of the error of [Host.Ask] where there is no person to ask. Its message is complete: a
// traceback of the tool adds nothing.
var ErrNoTerminal = errors.New("no terminal to ask on")

// Host is what a running call may do besides using its arguments: ask questions, show surfaces, report
// progress, and store steps of its turn. Its methods are safe for concurrent use. After an error of kind
// [ErrParked] the call must return; nothing that it returns is used.
type Host interface {
	// Ask asks a question and returns the answer, whenever it arrives. It returns an
	// error with code expired when the time for an answer has passed, with another code when the
	// turn has to end, and [ErrParked] when the turn continues later, in another run.
	Ask(ctx context.Context, q Question) (Answer, error)
	// Show displays something that needs no answer, and returns its id. A run that
	// shows the same again after a crash shows nothing new.
	Show(ctx context.Context, s Surface) (id string, err error)
	// Dismiss removes what Ask or Show has displayed, by its id.
	Dismiss(ctx context.Context, id string) error
	// Progress reports how far the call is. It is published and not stored, and frequent reports
	// are thinned out.
	Progress(ctx context.Context, p Progress) error
	// StepResult returns the stored result of a named step, and whether there is one.
	StepResult(ctx context.Context, name string) (result json.RawMessage, done bool, err error)
	// StoreStep stores the result of a step that has been done and returns the one that counts:
	// the result of another run if it was stored first.
	StoreStep(ctx context.Context, name string, result json.RawMessage) (json.RawMessage, error)
}

// ErrParked reports that the run ends because the turn waits for an answer and uses no resources until
// then. It is the cause of the call's context as well.
var ErrParked = errors.New("turn parked: waiting for an answer; this run ends")

// ErrTooManyWaiting is in the error of a question that was not asked because the turn cannot be parked, and
// the worker has as many such turns of its tenant in memory as it may.
var ErrTooManyWaiting = errors.New("too many turns wait for answers in the memory of this worker")

// Question is what a tool asks.
type Question struct {
	// Name identifies the question within the call. Without one it is numbered, in the
	// order in which the call asks.
	Name string
	// Number is the number of a question without a name, from 1 on, if the caller counts itself:
	// one whose questions reach the host at the same time. With 0 the host counts.
	Number int
	// Tool is the id of the UI tool (tool_name of the event); empty: the tool of the call.
	Tool string
	// Input marks a request for input ([events.InteractionInputRequest]), not a UI tool.
	Input bool
	// Component that shows it. Empty: the one of Tool's binding, or UserInputRequest for Input.
	Component string
	// Display is composer, inline, artifact or view. Empty: the one of Tool's binding, or composer
	// for Input, else inline.
	Display string
	// Payload is what the component shows, a JSON object.
	Payload json.RawMessage
	// Schema that an answer has to match, JSON Schema; nil accepts any JSON value.
	Schema json.RawMessage
	// Timeout is how long an answer is waited for, from when the question was asked first; 0 is
	// as long as the turn may live.
	Timeout time.Duration
	// Secret keeps the answer out of records, events, logs and results.
	Secret bool
}

// Answer is the answer to a question.
type Answer struct {
	ID     string          // of the question: tool_call_id of its event
	Value  json.RawMessage // any JSON value
	Secret bool
}

// Surface is what a tool shows without asking. The fields are as in a [Question].
type Surface struct {
	Name, Tool, Component, Display string
	Number                         int
	Payload                        json.RawMessage
}

// Progress is how far a call is.
type Progress struct {
	Percent float64 // 0 to 100, less than 0 if unknown
	Message string
	Tool    string // name to show, the one of the call if empty
	Corr    string // the question or surface that it belongs to, the call if empty
}
