package expression

import (
	"fmt"
)

// Code is what an [Error] is about. Codes never change their spelling.
type Code string

// Codes of [Parse].
const (
	CodeSyntax          Code = "syntax"            // not an expression
	CodeNotAllowed      Code = "not_allowed"       // an operator, function or literal of Python that conditions do not have
	CodeBareName        Code = "bare_name"         // a name without ${}
	CodeBadName         Code = "bad_name"          // the text within ${} is not a name
	CodeReferenceInText Code = "reference_in_text" // ${name} within quotes
	CodeTooLarge        Code = "too_large"         // over 4 KiB, or over 100 levels deep
)

// Codes of [Expression.Eval].
const (
	CodeUnknownVariable Code = "unknown_variable" // the context does not have it
	CodeType            Code = "type"             // the values have no order, or are not numbers
)

// Error is why a condition cannot be used or evaluated. It never contains a value of the context.
type Error struct {
	Code    Code
	Column  int    // in characters from 1, line breaks counted as one; 0 for the whole condition
	Message string // what is wrong
	Fix     string // what to do about it
}

// Error implements error: position, message and fix.
func (e *Error) Error() string {
	text := e.Message
	if e.Column > 0 {
		text = fmt.Sprintf("character %d: %s", e.Column, text)
	}
	if e.Fix != "" {
		text += ": " + e.Fix
	}
	return text
}

// AtLoad reports whether [Parse] returned the error; false: [Expression.Eval].
func (e *Error) AtLoad() bool { return e.Code != CodeUnknownVariable && e.Code != CodeType }
