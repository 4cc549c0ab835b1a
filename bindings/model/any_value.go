package model

import (
	"encoding/json"

	"github.com/oneturn/oneturn/events"
)

// Value is one compiled JSON Schema of any value, not just an object: for example the answer of a
// person. It is immutable and safe for concurrent use.
type Value struct{ model *Model }

// CompileValue is [CompileSchema] for a schema of any value. The bounds are the same.
func CompileValue(name string, schema json.RawMessage) (*Value, error) {
	m, err := compileSchema(name, schema, false)
	if err != nil {
		return nil, err
	}
	return &Value{m}, nil
}

// Conform coerces, completes and validates v in one pass, and reports whether out is another
// value than v. Violations are at most [MaxViolations]; with any there is no value. V is never modified.
func (t *Value) Conform(v any) (out any, changed bool, violations []Violation) {
	return t.model.conform(v)
}

// ConformJSON is [Value.Conform] for a value that is not decoded. It returns data itself if
// nothing changes. The error is why data cannot be read as JSON.
func (t *Value) ConformJSON(data json.RawMessage) (json.RawMessage, []Violation, error) {
	tree, err := events.Decode(data)
	if err != nil {
		return nil, nil, err
	}
	out, changed, violations := t.Conform(tree)
	if len(violations) > 0 || !changed {
		return data, violations, nil
	}
	fitting, err := events.AppendJSON(nil, out)
	return fitting, nil, err
}

// Violations checks v as it is: no text counts as a number, no default is filled in, and a key
// that `additionalProperties: false` excludes is a violation. They are at most [MaxViolations].
func (t *Value) Violations(v any) []Violation {
	_, _, violations := t.model.run(v, checker{set: noFields, strict: true})
	return violations
}

// JSONSchema is [Model.JSONSchema].
func (t *Value) JSONSchema() json.RawMessage { return t.model.JSONSchema() }
