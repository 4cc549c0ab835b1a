// Package turn remembers what a tool has done, for as long as its turn is in the journal.
//
// A tool runs again when its worker died, was parked while it waited for a person, or was told
// to try again. What it has done in a [Step] it is not asked to do again.
package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Step does something once and remembers the result: a run of the tool that comes to the step
// after its result was stored gets that result, and do is not called. If do fails, nothing is
// stored, and the next run does it again. If the worker dies between the effect and the store,
// the next run does it again as well: hand the idempotency key of the call on
// ([tools.CallFrom]) where it counts.
//
// The name is unique within the call: one that a run uses twice is an error. The result goes
// through JSON on the first run too, so that no run sees what another does not: unexported fields
// are lost, numbers in interfaces are json.Number. Errors that are not do's own end the tool:
// return them.
func Step[T any](ctx context.Context, name string, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	op := fmt.Sprintf("step %q", name)
	desk, err := tools.HostFrom(ctx, op)
	if err != nil {
		return none, err
	}
	inside, err := tools.BeginStep(ctx, name)
	if err != nil {
		return none, err
	}
	stored, done, err := desk.StepResult(ctx, name)
	if err != nil {
		return none, err
	}
	if done {
		return decode[T](op, stored)
	}
	result, err := do(inside)
	if err != nil {
		return none, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return none, &events.Error{Code: events.CodeToolError, Op: op, Msg: fmt.Sprintf("it is done, but its result of type %T has no JSON form and cannot be stored", result), Err: err}
	}
	if stored, err = desk.StoreStep(ctx, name, data); err != nil {
		return none, err
	}
	return decode[T](op, stored)
}

func decode[T any](op string, stored json.RawMessage) (T, error) {
	var result T
	d := json.NewDecoder(bytes.NewReader(stored))
	d.UseNumber()
	if err := d.Decode(&result); err != nil {
		return result, &events.Error{Code: events.CodeToolError, Op: op, Msg: fmt.Sprintf("the stored result does not fit %T: was the tool changed since?", result), Err: err}
	}
	return result, nil
}
