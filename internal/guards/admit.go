package guards

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// AdmitInput asks the guards in order whether the call may happen. The error is a *[Refusal], or
// the end of ctx. A guard that panics refuses.
func AdmitInput(ctx context.Context, list []Guard, call *tools.Call) error {
	for _, g := range list {
		if err := ask(ctx, func() error { return g.Input(ctx, call) }); err != nil {
			return err
		}
	}
	return nil
}

// AdmitOutput is [AdmitInput] for a result.
func AdmitOutput(ctx context.Context, list []Guard, call *tools.Call, output json.RawMessage) error {
	for _, g := range list {
		if err := ask(ctx, func() error { return g.Output(ctx, call, output) }); err != nil {
			return err
		}
	}
	return nil
}

// ask asks one guard.
func ask(ctx context.Context, guard func() error) (refused error) {
	defer func() {
		if p := recover(); p != nil {
			refused = &Refusal{Reason: "a guard broke, so the call is refused", Err: &tools.PanicError{Value: p, Stack: debug.Stack()}}
		}
	}()
	err := guard()
	var r *Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r) && r != nil:
		return &Refusal{Reason: worded(r.Reason), Err: r.Err}
	case ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))):
		return err
	default:
		return &Refusal{Reason: worded(err.Error()), Err: err}
	}
}

// worded is the reason of a refusal, never empty.
func worded(reason string) string {
	if strings.TrimSpace(reason) == "" {
		return "a guard refuses the call"
	}
	return events.Clip(reason)
}
