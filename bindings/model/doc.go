// Package model checks what an agent produced against the model that its workflow declares.
//
// Two languages compile into one immutable tree: the structured outputs of MozaiksAI
// ([CompileMozaiks]) and JSON Schema 2020-12 ([CompileSchema]). One pass over a value
// ([Model.Check]) coerces, fills defaults, drops unknown keys and validates. What coerces into
// what is one table with two columns, see coerce.go: MozaiksAI's models coerce like pydantic's
// lax mode, JSON Schema models only where the schema leaves no doubt about what was meant.
//
// Values are JSON trees of nil, bool, string, [encoding/json.Number], []any and map[string]any.
// Faults and texts made of them name paths, rules and what the manifest allows, never a value
// of the data.
package model
