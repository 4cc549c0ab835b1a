// Package diag is what checks of inputs report: a finding, with its place and its fix.
//
// A [Finding] is one thing that is wrong or worth knowing. Packages whose findings have more, such
// as the workflow of a manifest or the object on a server, embed it. An [Error] is an error made of
// findings; [Of] takes the finding out of any error, so that a caller can print message and fix separately. Messages and fixes contain no secrets.
package diag

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Severity of a [Finding].
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // something does not work
	SeverityWarning Severity = "warning" // works, but probably not as intended
	SeverityInfo    Severity = "info"    // worth knowing
)

// Finding is one thing that a check has found.
type Finding struct {
	Severity Severity `json:"severity,omitempty"`
	File     string   `json:"file,omitempty"` // relative, slash-separated
	Line     int      `json:"line,omitempty"` // from 1; 0 if no line is known
	// Field is the setting, the key of a manifest, or the place in a schema or model.
	Field   string `json:"field,omitempty"`
	Code    string `json:"code,omitempty"`    // stable name of the kind of finding
	Message string `json:"message,omitempty"` // what is wrong, with the value
	Fix     string `json:"fix,omitempty"`     // what to do about it
}

// Place gives file:line, or less if less is known.
func (f Finding) Place() string {
	if f.File == "" || f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// String gives the finding as one line: file:line: severity: message [code]: fix.
func (f Finding) String() string {
	var b strings.Builder
	if at := f.Place(); at != "" {
		b.WriteString(at + ": ")
	}
	fmt.Fprintf(&b, "%s: %s [%s]", f.Severity, f.Message, f.Code)
	if f.Fix != "" {
		b.WriteString(": " + f.Fix)
	}
	return b.String()
}

// Error is an error made of findings.
type Error struct {
	Op       string    // begins each line of the text; "" for none
	Findings []Finding // at least one
}

// Errorf returns an error with one finding.
func Errorf(op, field, fix, format string, args ...any) error {
	return &Error{Op: op, Findings: []Finding{{Severity: SeverityError, Field: field, Message: fmt.Sprintf(format, args...), Fix: fix}}}
}

// Error implements error: a line for each finding, op: field: message; fix.
func (e *Error) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = e.line(f)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each finding as an error, so that a command can print its name before each line.
func (e *Error) Unwrap() []error {
	all := make([]error, len(e.Findings))
	for i, f := range e.Findings {
		all[i] = errors.New(e.line(f))
	}
	return all
}

func (e *Error) line(f Finding) string {
	parts := slices.DeleteFunc([]string{e.Op, f.Field, f.Message}, func(s string) bool { return s == "" })
	text := strings.Join(parts, ": ")
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// Of returns the first finding of an [Error] in the tree of err. It reports false if there is none.
func Of(err error) (Finding, bool) {
	var e *Error
	if !errors.As(err, &e) || len(e.Findings) == 0 {
		return Finding{}, false
	}
	return e.Findings[0], true
}
