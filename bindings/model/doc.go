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
// # Files
//
// Compiling, either language into the types of compiled_type.go:
//
//   - model.go, any_value.go: [Model] and [Value], what is compiled
//   - mozaiks_compiler.go, mozaiks_types.go, mozaiks_constraints.go, pattern.go: MozaiksAI's definitions, their types, and their closed
//     sets, bounds and patterns
//   - schema_compiler.go, schema_graph.go, schema_reference.go: a JSON Schema, its sub-schemas, and references between them;
//     misspelt_keyword.go: keywords that nothing reads; required_unknown.go: required names that nothing declares
//   - external_schema.go: a schema of another program, as far as it can be compiled
//   - schema_error.go: what is wrong with a schema; schema_contradictions.go: rules that one value cannot meet;
//     combined_contradictions.go: rules of several parts that cannot be met together
//   - jsonschema_check.go, probe_sample.go: what the tree does not cover, checked by a JSON Schema library, whose cost is
//     measured with a sample value at load
//   - render.go: a model as JSON Schema
//
// Checking a value:
//
//   - check.go: one pass, and its bounds; coerce.go: the table of coercions
//   - text_number_list.go, number.go, enum.go, object.go, field_order.go: the rules of each type
//   - union.go, tagged_union.go: the alternative that fits best, and why none does
//   - field_spellings.go: the field that a key in another spelling means
//   - violation.go, feedback.go: what is reported, and the text for the model
package model
