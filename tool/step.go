package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/internal/tools"
)

// Step runs do once per turn and stores its result: a later run of the tool that reaches the
// step gets the stored result, and do is not called. If do fails, nothing is stored, and the next
// run calls it again. If the worker dies between the effect and the store, the next run also
// calls it again: pass on the idempotency key of the call ([Info]) where that matters.
//
// The name must be unique within the call: using it twice in a run is an error. The result is
// encoded as JSON on the first run too, so that all runs get the same: unexported fields are lost,
// numbers in interfaces are json.Number. Return errors that are not from do unchanged: they end
// the tool.
func Step[T any](ctx context.Context, name string, do func(ctx context.Context) (T, error)) (T, error) {
	var none T
	op := fmt.Sprintf("step %q", name)
	host, err := tools.HostFrom(ctx, op)
	if err != nil {
		return none, err
	}
	inside, err := tools.BeginStep(ctx, name)
	if err != nil {
		return none, err
	}
	stored, done, err := host.StepResult(ctx, name)
	if err != nil {
		return none, err
	}
	if done {
		return stepResult[T](op, stored)
	}
	result, err := do(inside)
	if err != nil {
		return none, err
	}
	data, err := json.Marshal(result)
	if err != nil {
		return none, authorError(op, fmt.Sprintf("the step is done, but its result of type %T has no JSON form and cannot be stored", result), err)
	}
	if stored, err = host.StoreStep(ctx, name, data); err != nil {
		return none, err
	}
	return stepResult[T](op, stored)
}

func stepResult[T any](op string, stored json.RawMessage) (T, error) {
	var result T
	if err := decode(stored, &result); err != nil {
		return result, authorError(op, fmt.Sprintf("the stored result does not match type %T: was the tool changed since?", result), err)
	}
	return result, nil
}
