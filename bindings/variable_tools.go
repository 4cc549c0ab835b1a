package bindings

import (
	"maps"
	"slices"
	"strings"
)

// Variables whose value a tool reads: sources of type data_reference and data_entity. oneturn knows no database; the
// manifest names a tool with tool, which is to be called with the other keys of the source as its arguments.

// VariableCall is a call of a tool that reads the start value of a variable.
type VariableCall struct {
	Variable string
	Binding  *Binding // of the tool, whose effect is none; it has no agent
	// Args are the keys of the source (database_name, collection, query_template, …). In query_template a text that is
	// {{runtime.NAME}} is what the chat knows by that name, {{var.NAME.KEY}} the value of another variable.
	Args map[string]any

	kind string // type of the variable
}

// Value returns what the tool has returned as the type of the variable has it, and false if it has no such value.
func (c *VariableCall) Value(result any) (any, bool) { return coerceVariable(c.kind, result) }

// ReadByTools returns the names of the variables of a workflow that a tool reads, in the order of the manifest; nil if there are
// none. The caller must not change the list.
func (s *Set) ReadByTools(workflow string) []string {
	if w := s.find(workflow); w != nil {
		return w.readByTools
	}
	return nil
}

// VariableCalls returns the calls that read variables of a workflow, in the order of the manifest. values are the
// variables of the chat, with what it knows itself ([Chat.Values]).
func (s *Set) VariableCalls(workflow string, values map[string]any) []VariableCall {
	w := s.find(workflow)
	if w == nil {
		return nil
	}
	var calls []VariableCall
	for i := range w.variables {
		v := &w.variables[i]
		if v.Tool == "" {
			continue
		}
		args := maps.Clone(v.Source.Params)
		delete(args, "tool")
		if template, ok := args["query_template"]; ok {
			args["query_template"] = fillTemplate(template, values)
		}
		calls = append(calls, VariableCall{Variable: v.Name, Binding: w.tools[v.Tool].binding, Args: args, kind: v.Type})
	}
	return calls
}

// loadedBy finds the tool that reads a variable, and reports one that cannot.
func (b *binder) loadedBy(v *Variable) {
	name, _ := v.Source.Params["tool"].(string)
	if name == "" {
		b.infof(v.at, "no_hook", "name a tool that reads it with tool: NAME, or let the tools of the workflow set it",
			"context variable %s has the source %s and no tool that reads it: it has its default until a tool sets it", v.Name, v.Source.Type)
		return
	}
	bound := b.w.tools[name].binding
	switch {
	case bound == nil:
		b.warnf(v.at, "unknown_tool", thereOr(name, slices.Sorted(maps.Keys(b.w.tools)), "add it to the tools of the workflow"),
			"context variable %s names the unknown tool %s: it has its default until a tool sets it", v.Name, quoted(name))
	case bound.Effect != EffectNone:
		b.warnf(v.at, "hook_with_effect", "write effect: none for the tool if it changes nothing, or name another tool",
			"context variable %s is not read with tool %s, whose effect is %s", v.Name, quoted(name), bound.Effect)
	default:
		v.Tool = name
	}
}

// fillTemplate replaces the texts of a template that are references. A reference to what is not known is null.
func fillTemplate(template any, values map[string]any) any {
	switch t := template.(type) {
	case map[string]any:
		filled := make(map[string]any, len(t))
		for k, v := range t {
			filled[k] = fillTemplate(v, values)
		}
		return filled
	case []any:
		filled := make([]any, len(t))
		for i, v := range t {
			filled[i] = fillTemplate(v, values)
		}
		return filled
	case string:
		inner, open := strings.CutPrefix(strings.TrimSpace(t), "{{")
		inner, closed := strings.CutSuffix(inner, "}}")
		kind, at, dotted := strings.Cut(strings.TrimSpace(inner), ".")
		if open && closed && dotted && (kind == "runtime" || kind == "var") {
			return valueAt(values, at)
		}
	}
	return template
}
