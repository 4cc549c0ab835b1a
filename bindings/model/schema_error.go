package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

// maxSchemaProblems bounds what is reported about one schema.
const maxSchemaProblems = 50

// SchemaError is why [CompileSchema] refuses a schema: everything that is wrong with it, so
// that it can be fixed in one go. It is an *[events.Error] too, with code bad_args or
// too_large.
type SchemaError struct {
	Problems []Problem // at least one, by place; Field is a JSON pointer into the schema

	code events.Code
}

// Error implements error: the first problem and how many more there are.
func (e *SchemaError) Error() string { return e.event().Error() }

// Unwrap returns the error as an *[events.Error].
func (e *SchemaError) Unwrap() error { return e.event() }

func (e *SchemaError) event() *events.Error {
	first := e.Problems[0]
	where := "the schema of model " + quote(first.Model)
	if first.Field != "" {
		where += " at " + quote(first.Field)
	}
	text := where + ": " + first.Message + "; " + first.Fix
	if more := len(e.Problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return &events.Error{Code: e.code, Op: "compile JSON Schema", Msg: text}
}

// refuse is the error for a schema that cannot be used as a whole.
func refuse(name string, code events.Code, place, message, fix string) error {
	return &SchemaError{code: code, Problems: []Problem{problem(name, place, diag.SeverityError, message, fix)}}
}

// refusals collects what is wrong with one schema.
type refusals struct {
	name     string
	problems []Problem
	stopped  bool // the rest cannot be checked
}

// refuse records a problem. place is a JSON pointer into the schema.
func (r *refusals) refuse(place, message, fix string) {
	if len(r.problems) < maxSchemaProblems {
		r.problems = append(r.problems, problem(r.name, place, diag.SeverityError, message, fix))
	}
}

// stop records a problem after which nothing else can be checked.
func (r *refusals) stop(place, message, fix string) {
	if !r.stopped {
		r.refuse(place, message, fix)
	}
	r.stopped = true
}

// err returns what was noted, nil if nothing was.
func (r *refusals) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Field, b.Field) })
	return &SchemaError{code: events.CodeBadArgs, Problems: r.problems}
}

// typeFix returns what to write instead of an unknown type.
func typeFix(word string) string {
	known := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
	foreign := map[string]string{
		"str": "string", "text": "string", "int": "integer", "float": "number", "double": "number", "decimal": "number",
		"bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "map": "object", "none": "null",
	}
	meant := foreign[strings.ToLower(word)]
	if meant == "" {
		meant = closestName(word, known)
	}
	if meant == "" {
		return "write one of " + strings.Join(known, ", ")
	}
	return "did you mean " + quote(meant) + "? Types are " + strings.Join(known, ", ")
}
