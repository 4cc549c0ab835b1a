package agentjson

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/oneturn/oneturn/events"
)

// Code is the reason why a text has no object that may be used. Codes are stored with messages and never
// change their spelling.
type Code string

// The codes.
const (
	NoJSON       Code = "no_json"       // nothing in the text looks like an object
	NotAnObject  Code = "not_an_object" // the text is another value, or a list of several
	Truncated    Code = "truncated"     // the text ends inside an object, or inside thoughts
	Ambiguous    Code = "ambiguous"     // two objects fit the model and differ
	BadSyntax    Code = "bad_syntax"    // an object that cannot be read in one way only
	BadString    Code = "bad_string"    // the same, about a string: quotes or escapes
	BadNumber    Code = "bad_number"    // a number that is not JSON or is beyond doubles
	DuplicateKey Code = "duplicate_key" // two readers would see two objects
	Elided       Code = "elided"        // three dots in place of data
	TooDeep      Code = "too_deep"      // more levels than [events.MaxDepth]
	TooLarge     Code = "too_large"     // a text of more than [MaxTextBytes]
	TooMany      Code = "too_many"      // more values than [events.MaxNodes]
)

// Error is the only error of this package. It is an [events.ErrBadArgs].
type Error struct {
	Code    Code
	Offset  int    // in bytes, where in the text; of the object if the place in it is not known
	Message string // what is wrong and what to do, for people and models
	Line    int    // of Offset, from 1
	Column  int    // of Offset in its line, in characters from 1

	prose bool // the braces do not hold an object
	meant bool // other readers take the object
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("extract object: %s: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("extract object: %s at line %d, column %d: %s", e.Code, e.Line, e.Column, e.Message)
}

// Unwrap returns [events.ErrBadArgs].
func (*Error) Unwrap() error { return events.ErrBadArgs }

// Feedback is a text for the model that wrote the output: what is wrong, where, and what to send.
func (e *Error) Feedback() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf(" at line %d, column %d", e.Line, e.Column)
	}
	return fmt.Sprintf("Your reply could not be used (%s%s): %s. Reply with exactly one JSON object and nothing else.", e.Code, where, e.Message)
}

// locate fills in line and column.
func (e *Error) locate(text string) *Error {
	if e.Code == NoJSON || e.Code == TooLarge {
		return e
	}
	before := text[:min(e.Offset, len(text))]
	line := before[strings.LastIndexByte(before, '\n')+1:]
	e.Line, e.Column = strings.Count(before, "\n")+1, utf8.RuneCountInString(line)+1
	return e
}

// isFinal reports whether the text does mean the object that e is about: other readers take it, and no
// later object may be taken instead.
func (e *Error) isFinal() bool {
	return e.meant || e.Code == BadNumber || e.Code == TooDeep
}
