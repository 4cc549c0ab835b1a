// Package model checks what an agent produced against the model that its workflow declares.
//
// Two languages compile into one immutable tree: the structured outputs of MozaiksAI
// ([CompileMozaiks]) and JSON Schema 2020-12 ([CompileSchema]). One pass over a value
// ([Model.Check]) coerces, fills defaults, drops unknown keys and validates. What coerces into
// what is one table with two columns, see coerce.go: MozaiksAI's models coerce like pydantic's
// lax mode, JSON Schema models only where the schema leaves no doubt about what was meant.
//
// Values are JSON trees of nil, bool, string, [encoding/json.Number], []any and map[string]any.
// Violations and texts made of them name paths, rules and what the manifest allows, never a value
// of the data.
//
// How the parts fit: mozaiks.go with mozaiks_types.go and schema.go with graph.go (the parts of a schema
// and their references) compile into nodes (node.go). check.go walks a value and its node, with a file for
// each kind of rule: number.go, constraints.go, enum.go, object.go, union.go. name_matching.go finds the
// field that a key in another spelling means. A schema of another program compiles as far as possible
// (external_schema.go), its rest is checked by a full validator (full_check.go). contradiction.go and
// unsatisfiable.go look for rules that cannot be met, schema_error.go collects what is wrong with a schema.
// feedback.go and violation_text.go write the texts, render.go the schema of a model.
package model
