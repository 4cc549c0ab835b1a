package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

// Schemas that services and MCP servers declare may use what is refused elsewhere. The compiler runs again without
// each rule that it refuses, and what was removed is listed as unchecked.

// maxPruned bounds how often a schema is compiled again without what cannot be checked.
const maxPruned = 20

// CompileExternal compiles the schema of an object that another program has written, a service or an MCP
// server. It may use what [CompileSchema] refuses: such rules are left out, because that program
// checks them itself. Unchecked names each by its place. The model is nil if nothing is left to
// check.
func CompileExternal(name string, schema json.RawMessage) (m *Model, unchecked []Problem) {
	m, _, unchecked = compileExternal(name, schema, true)
	return m, unchecked
}

// CompileExternalValue is [CompileExternal] for the schema of any value.
func CompileExternalValue(name string, schema json.RawMessage) (v *Value, unchecked []Problem) {
	m, _, unchecked := compileExternal(name, schema, false)
	if m == nil {
		return nil, unchecked
	}
	return &Value{m}, unchecked
}

// Checkable is a schema of any value without what cannot be checked here. It is an error if nothing
// is left.
func Checkable(schema json.RawMessage) (json.RawMessage, error) {
	m, rest, unchecked := compileExternal("schema", schema, false)
	if m == nil {
		return nil, &SchemaError{Problems: unchecked, code: events.CodeBadArgs}
	}
	return rest, nil
}

func compileExternal(name string, schema json.RawMessage, object bool) (m *Model, rest json.RawMessage, unchecked []Problem) {
	rest = schema
	var tree any
	for range maxPruned {
		m, err := compileSchema(name, rest, object)
		if err == nil {
			m.schema = compact(schema)
			return m, rest, unchecked
		}
		var refused *SchemaError
		if tree == nil {
			var bad error
			if tree, bad = events.Decode(rest); bad != nil {
				tree = nil
			}
		}
		if !errors.As(err, &refused) {
			return nil, nil, append(unchecked, problem(name, "", diag.SeverityWarning, err.Error(), ""))
		}
		pruned := false
		for _, p := range slices.Backward(refused.Problems) { // of a list, the last first
			p.Severity = diag.SeverityWarning
			if value, ok := prune(tree, p.Field); ok {
				pruned = true
				p.Message += shown(value)
			}
			unchecked = append(unchecked, p)
		}
		next, err := events.AppendJSON(nil, tree)
		if !pruned || err != nil {
			break
		}
		rest = next
	}
	return nil, nil, unchecked
}

// shown is the text that a rule has, in brackets.
func shown(value any) string {
	const most = 200
	text, ok := value.(string)
	if !ok {
		return ""
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return " (" + strconv.Quote(text) + ")"
}

// prune takes the rule at a pointer out of a schema, and returns it. A schema in a list or under a
// name becomes one that admits everything.
func prune(tree any, pointer string) (value any, ok bool) {
	if pointer == "" {
		return nil, false
	}
	steps := strings.Split(pointer[1:], "/")
	named := false // the step at hand is a name, not a keyword
	for i, step := range steps {
		step = unescape(step)
		last := i == len(steps)-1
		switch at := tree.(type) {
		case map[string]any:
			value, ok = at[step]
			switch {
			case !ok:
				return nil, false
			case last && named:
				at[step] = map[string]any{}
				return value, true
			case last:
				delete(at, step)
				return value, true
			}
			tree, named = value, !named && holdsNames(step)
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(at) {
				return nil, false
			}
			if last {
				value, at[n] = at[n], map[string]any{}
				return value, true
			}
			tree, named = at[n], false
		default:
			return nil, false
		}
		if last {
			return nil, false
		}
		if step == "patternProperties" { // a pattern of names that cannot be read: any name may be meant
			return pruneNames(tree, steps[i+1:])
		}
	}
	return nil, false
}

// pruneNames makes of patterns of names one that takes every name.
func pruneNames(tree any, steps []string) (value any, ok bool) {
	names, is := tree.(map[string]any)
	if !is || len(steps) != 1 {
		return prune(tree, "/"+strings.Join(steps, "/"))
	}
	pattern := unescape(steps[0])
	if _, ok = names[pattern]; !ok {
		return nil, false
	}
	delete(names, pattern)
	names[""] = map[string]any{} // matches every name
	return pattern, true
}

func holdsNames(keyword string) bool {
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return true
	}
	return false
}

// Place is where a problem of a schema is, as text.
func (p Problem) Place() string {
	if p.Field == "" {
		return p.Message
	}
	return fmt.Sprintf("%s: %s", p.Field, p.Message)
}
