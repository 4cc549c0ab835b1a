package guards

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// A guard of a manifest at work: declared is the guard, check one of the four things that it can check, value the
// arguments or the result, decoded or encoded only when the check needs it.

// check is what a declared guard checks of a value: the arguments or the result.
type check interface {
	refuse(ctx context.Context, call *tools.Call, v *value) error
}

// value is what a guard checks, as a tree and as JSON; either is made on demand.
type value struct {
	name  string // for messages
	text  func() (json.RawMessage, error)
	trees func() (any, error)
}

// declared is a guard of a manifest. One of its checks is set.
type declared struct {
	input, output check
	message       string
	summary       string
}

// String is the guard in short.
func (d declared) String() string { return d.summary }

// Input implements [Guard].
func (d declared) Input(ctx context.Context, call *tools.Call) error {
	if d.input == nil {
		return nil
	}
	return d.withMessage(d.input.refuse(ctx, call, &value{
		name: "the arguments",
		text: call.EncodedArgs,
		trees: func() (any, error) {
			if call.Args == nil {
				return map[string]any{}, nil
			}
			return call.Args, nil
		},
	}))
}

// Output implements [Guard].
func (d declared) Output(ctx context.Context, call *tools.Call, output json.RawMessage) error {
	if d.output == nil {
		return nil
	}
	if len(output) == 0 {
		output = json.RawMessage("null")
	}
	return d.withMessage(d.output.refuse(ctx, call, &value{
		name:  "the result",
		text:  func() (json.RawMessage, error) { return output, nil },
		trees: func() (any, error) { return events.Decode(output) },
	}))
}

// withMessage replaces the reason of a refusal by the message of the manifest. Why a guard could not
// decide follows it: the message is about calls that the guard is there to refuse.
func (d declared) withMessage(err error) error {
	if err == nil || d.message == "" {
		return err
	}
	var undecided *Refusal
	if errors.As(err, &undecided) && undecided.Err != nil {
		return &Refusal{Reason: d.message + ": " + undecided.Reason, Err: err}
	}
	return &Refusal{Reason: d.message, Err: err}
}

// tree returns the value as a tree, or the refusal of one that cannot be read.
func (v *value) tree() (any, error) {
	tree, err := v.trees()
	if err != nil {
		return nil, &Refusal{Reason: v.name + " cannot be read by a guard", Err: err}
	}
	return tree, nil
}
