package model

import (
	"encoding/json"

	"github.com/oneturn/oneturn/events"
)

// Value is one compiled JSON Schema of any value, not just an object: that of what a person
// answers. It is immutable and safe for concurrent use.
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
// value than v. Faults are at most [MaxFaults]; with any there is no value. V is never modified.
func (t *Value) Conform(v any) (out any, changed bool, faults []Fault) { return t.model.conform(v) }

// ConformJSON is [Value.Conform] for a value that is not decoded. It returns data itself if
// nothing changes. The error says why data is not JSON that can be read.
func (t *Value) ConformJSON(data json.RawMessage) (json.RawMessage, []Fault, error) {
	tree, err := events.Decode(data)
	if err != nil {
		return nil, nil, err
	}
	out, changed, faults := t.Conform(tree)
	if len(faults) > 0 || !changed {
		return data, faults, nil
	}
	fitting, err := events.AppendJSON(nil, out)
	return fitting, nil, err
}

// Faults looks at v as it is: no text counts as a number, no default is filled in, and a key
// that `additionalProperties: false` excludes is a fault. They are at most [MaxFaults].
func (t *Value) Faults(v any) []Fault {
	_, _, faults := t.model.run(v, checker{set: noFields, strict: true})
	return faults
}

// JSONSchema is [Model.JSONSchema].
func (t *Value) JSONSchema() json.RawMessage { return t.model.JSONSchema() }
