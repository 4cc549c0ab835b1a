package guards

import (
	"context"
	"encoding/json"

	"github.com/oneturn/oneturn/internal/tools"
)

// Guard looks at a call before the tool is entered, at its result after, or at both.
type Guard interface {
	// Input returns an error to refuse the call, a [Refusal] as a rule.
	Input(ctx context.Context, call *tools.Call) error
	// Output returns an error to refuse the result, which is then not used.
	Output(ctx context.Context, call *tools.Call, output json.RawMessage) error
}

// Refusal is why a guard refuses. Reason is shown to people and models: no value of the call. Err
// is for logs, and nil as a rule.
type Refusal struct { //nolint:errname // it is a decision before it is an error
	Reason string
	Err    error
}

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

// Unwrap returns the cause of the refusal.
func (r *Refusal) Unwrap() error { return r.Err }

// Input makes a guard of a function that looks at calls.
func Input(f func(ctx context.Context, call *tools.Call) error) Guard { return inputFunc(f) }

// Output makes a guard of a function that looks at results.
func Output(f func(ctx context.Context, call *tools.Call, output json.RawMessage) error) Guard {
	return outputFunc(f)
}

type inputFunc func(context.Context, *tools.Call) error

func (f inputFunc) Input(ctx context.Context, call *tools.Call) error        { return f(ctx, call) }
func (inputFunc) Output(context.Context, *tools.Call, json.RawMessage) error { return nil }

type outputFunc func(context.Context, *tools.Call, json.RawMessage) error

func (outputFunc) Input(context.Context, *tools.Call) error { return nil }
func (f outputFunc) Output(ctx context.Context, call *tools.Call, output json.RawMessage) error {
	return f(ctx, call, output)
}
