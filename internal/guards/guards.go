// Package guards decides which calls may happen and which results may be used. A guard of a
// manifest ([Compile]) and a guard in Go ([Input], [Output], or any [Guard]) are the same to the
// engine: they are asked in order by [AdmitInput] and [AdmitOutput], and the first refusal ends
// the call.
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
