package events

import (
	"errors"
	"strings"
)

// An [Error] joins a code of the wire contract with the operation and the text for logs. A code alone is an error
// value to compare with, for example [ErrTimeout].

// Code names one class of failure. Codes are part of the wire contract: they appear in
// tool_response events as `code` and never change their spelling.
type Code string

// The codes of the wire contract, see docs/wire-contract.md.
const (
	CodeBadArgs          Code = "bad_args"          // the arguments do not fit the tool
	CodeUserError        Code = "user_error"        // the tool rejects what the user gave
	CodeToolError        Code = "tool_error"        // the tool failed
	CodeTimeout          Code = "timeout"           // the tool took longer than it may
	CodeGuardrail        Code = "guardrail"         // a guard refused the input or the output
	CodeUnknownTool      Code = "unknown_tool"      // the bound tool is not known to this worker
	CodeNoBinding        Code = "no_binding"        // nothing is bound to workflow, agent and model
	CodeValidationFailed Code = "validation_failed" // structured_data does not fit the model
	CodeInterrupted      Code = "interrupted"       // the worker died inside the tool
	CodeCancelled        Code = "cancelled"         // the turn was cancelled
	CodeExpired          Code = "expired"           // the turn or its question ran out of time
	CodeTooOld           Code = "too_old"           // the event is older than max_event_age
	CodeTooLarge         Code = "too_large"         // a value exceeds a size limit
	CodeStateCorrupt     Code = "state_corrupt"     // a journal record cannot be read
)

// Known reports whether c is one of the contract.
func (c Code) Known() bool {
	switch c {
	case CodeBadArgs, CodeUserError, CodeToolError, CodeTimeout, CodeGuardrail, CodeUnknownTool, CodeNoBinding,
		CodeValidationFailed, CodeInterrupted, CodeCancelled, CodeExpired, CodeTooOld, CodeTooLarge, CodeStateCorrupt:
		return true
	default:
		return false
	}
}

// Error is the one error type of oneturn. Its text names the operation, the value and the
// fix; [errors.Is] compares codes, so `errors.Is(err, events.ErrTimeout)` holds for every
// error of that code, also for one that was read back from the journal.
type Error struct {
	Code Code   // wire-stable class
	Op   string // what was being done, for example "decode event"
	Msg  string // what was wrong and how to fix it
	Err  error  // cause, may be nil
}

// Error implements error.
func (e *Error) Error() string {
	if e == nil { // a typed nil returned as error
		return "a nil *events.Error"
	}
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	b.WriteString(string(e.Code))
	if e.Msg != "" {
		b.WriteString(": ")
		b.WriteString(e.Msg)
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Is reports whether target is an [Error] of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error) // one link: errors.Is walks the chain
	return ok && e != nil && t != nil && t.Code == e.Code
}

// Sentinels to compare with errors.Is, one for each code.
var (
	ErrBadArgs      = &Error{Code: CodeBadArgs}
	ErrUserError    = &Error{Code: CodeUserError}
	ErrToolError    = &Error{Code: CodeToolError}
	ErrTimeout      = &Error{Code: CodeTimeout}
	ErrNoBinding    = &Error{Code: CodeNoBinding}
	ErrInterrupted  = &Error{Code: CodeInterrupted}
	ErrCancelled    = &Error{Code: CodeCancelled}
	ErrExpired      = &Error{Code: CodeExpired}
	ErrTooLarge     = &Error{Code: CodeTooLarge}
	ErrStateCorrupt = &Error{Code: CodeStateCorrupt}
)

// CodeOf returns the code of the first [Error] in err's chain, or "" if there is none.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) && e != nil {
		return e.Code
	}
	return ""
}
