package python

import (
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// ExceptionError is the Python exception that caused an [events.Error].
type ExceptionError struct {
	Type    string // name of its class, for example ValueError
	Message string // str(exception), after the type if that is only a key or nothing
}

// Error implements error. The surrounding [events.Error] has the message.
func (e *ExceptionError) Error() string { return e.Type }

// failure is the error part of a [reply].
type failure struct {
	Code      string `json:"code"`
	Type      string `json:"type"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	Returned  bool   `json:"returned"` // the function has returned a value that cannot be used
	Replace   bool   `json:"replace"`  // the process must not be used again
}

// toError turns the failure of a call into an error. Codes that neither the host script
// may choose nor the call's host has sent it count as tool_error.
func (f *failure) toError(op string, sent map[events.Code]bool) error {
	code := events.Code(f.Code)
	switch code {
	case events.CodeBadArgs, events.CodeUserError, events.CodeTooLarge:
	default:
		if !sent[code] {
			code = events.CodeToolError
		}
	}
	if code == events.CodeToolError && f.Type == "TimeoutError" { // of something that the function waited for
		code = events.CodeTimeout
	}
	err := &events.Error{Code: code, Op: op, Msg: f.Message, Err: &ExceptionError{Type: f.Type, Message: f.Message}}
	switch {
	case f.Retryable:
		return tools.Retryable(err)
	case f.Returned:
		return tools.Returned(err)
	}
	return err
}

// toolError describes a failure of the process around a call.
func toolError(op, format string, args ...any) error {
	return &events.Error{Code: events.CodeToolError, Op: op, Msg: fmt.Sprintf(format, args...)}
}
