package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// The description follows a JSON Schema to a depth of three: objects by their members, lists by their items,
// enumerations by their first values. It is for people, never for checks.

// shortSchema bounds the description of a schema in a line, in characters.
const shortSchema = 120

// inShort describes a JSON Schema in a line: {city: string, days?: integer}. What it cannot describe is
// "any".
func inShort(schema json.RawMessage) string {
	tree, err := events.Decode(schema)
	if err != nil {
		return "any"
	}
	const deepest = 3 // objects and lists inside each other
	return clean(shape(tree, deepest), shortSchema)
}

// shape describes the values that a schema describes, to a depth.
func shape(schema any, depth int) string {
	s, ok := schema.(map[string]any)
	if !ok {
		return "any"
	}
	if values, ok := s["enum"].([]any); ok {
		return oneOf(values)
	}
	if v, ok := s["const"]; ok {
		return oneOf([]any{v})
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok && depth > 0 {
			parts := make([]string, len(list))
			for i, part := range list {
				parts[i] = shape(part, depth-1)
			}
			return strings.Join(parts, " | ")
		}
	}
	switch t := s["type"].(type) {
	case string:
		return ofType(t, s, depth)
	case []any:
		parts := make([]string, len(t))
		for i, part := range t {
			name, _ := part.(string)
			parts[i] = ofType(name, s, depth)
		}
		return strings.Join(parts, " | ")
	}
	if s["properties"] != nil {
		return ofType("object", s, depth)
	}
	return "any"
}

// ofType describes the values of one type.
func ofType(name string, s map[string]any, depth int) string {
	switch {
	case name == "":
		return "any"
	case depth == 0:
		return name
	case name == "array":
		return "[" + shape(s["items"], depth-1) + "]"
	case name == "object":
		return fields(s, depth)
	default:
		return name
	}
}

// fields describes the members of an object, those that may be absent with a question mark.
func fields(s map[string]any, depth int) string {
	properties, _ := s["properties"].(map[string]any)
	if len(properties) == 0 {
		return "object"
	}
	required := map[string]bool{}
	list, _ := s["required"].([]any)
	for _, name := range list {
		if name, ok := name.(string); ok {
			required[name] = true
		}
	}
	parts := make([]string, 0, len(properties))
	for _, needed := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if required[name] != needed {
				continue
			}
			mark := "?"
			if needed {
				mark = ""
			}
			parts = append(parts, name+mark+": "+shape(properties[name], depth-1))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// oneOf lists the first values of an enumeration.
func oneOf(values []any) string {
	const most = 5
	var parts []string
	for _, v := range values[:min(len(values), most)] {
		text, err := events.AppendJSON(nil, v)
		if err != nil {
			return "any"
		}
		parts = append(parts, string(text))
	}
	if len(values) > most {
		parts = append(parts, fmt.Sprintf("%d more", len(values)-most))
	}
	return strings.Join(parts, " | ")
}
