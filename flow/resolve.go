package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// Outputs returns the output of a call of the program; ok is false if it has none (yet).
type Outputs func(call string) (output any, ok bool)

// Resolve returns the arguments of a call: its references are replaced by the values that they lead
// to. A value that is not there is null; within a longer text it is an error with code bad_args.
// Outputs are used as they are and never searched for references.
func (p *Program) Resolve(call *Call, tools Tools, outputs Outputs) (map[string]any, error) {
	tool, _ := tools.Find(call.Tool)
	r := resolver{p: p, call: call, outputs: outputs}
	if p.Kind == KindOrchestration {
		r.scope()
	}
	arguments := make(map[string]any, len(call.Arguments))
	for name, value := range call.Arguments {
		if belongsInside(tool.Program, name, value) {
			arguments[name] = value
			continue
		}
		arguments[name] = r.value(value)
	}
	return arguments, r.err
}

// Value returns the value of a group, or the output of a step with one call; ok is false if it has
// none. A group that collects has the outputs of the calls that succeeded; of a race the winner's
// output is the only one.
func (s *Step) Value(outputs Outputs) (value any, ok bool) {
	collected := map[string]any{}
	for i := range s.Calls {
		output, has := outputs(s.Calls[i].ID)
		switch {
		case !has:
		case !s.Group || s.Merge == MergeFirstSuccess:
			return output, true
		default:
			collected[childKey(&s.Calls[i], i)] = output
		}
	}
	return collected, len(collected) > 0
}

// resolver replaces the references of one call.
type resolver struct {
	p       *Program
	call    *Call
	outputs Outputs
	names   names          // of an orchestration
	steps   map[string]any // results of earlier steps that exist, by key
	err     error          // the first one
}

// scope collects what the call can refer to: the same names as when the program was compiled.
func (r *resolver) scope() {
	r.names = names{results: map[string]result{}, bindings: r.p.Bindings}
	r.steps = map[string]any{}
	for i := range r.p.Steps {
		step := &r.p.Steps[i]
		if slices.ContainsFunc(step.Calls, func(c Call) bool { return c.ID == r.call.ID }) {
			if len(step.Bindings) > 0 {
				r.names.bindings = maps.Clone(r.p.Bindings)
				maps.Copy(r.names.bindings, step.Bindings)
			}
			return
		}
		r.names.add(step)
		for j := range step.Calls {
			if output, ok := r.outputs(step.Calls[j].ID); ok && step.Calls[j].Key != "" {
				r.steps[step.Calls[j].Key] = output
			}
		}
		if value, ok := step.Value(r.outputs); ok && step.Group && step.Key != "" {
			r.steps[step.Key] = value
		}
	}
}

func (r *resolver) value(v any) any {
	switch v := v.(type) {
	case string:
		if r.p.Kind == KindPlan {
			return r.reference(v)
		}
		return r.template(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = r.value(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = r.value(item)
		}
		return out
	default:
		return v
	}
}

// reference resolves a text of a plan.
func (r *resolver) reference(text string) any {
	if isEscaped(text) {
		return text[1:]
	}
	if !isReference(text) {
		return text
	}
	ref, err := parseReference(text)
	calls := r.p.Calls()
	if err != nil || ref.call >= len(calls) { // the compiler has refused such a plan
		return nil
	}
	output, ok := r.outputs(calls[ref.call].ID)
	if !ok {
		return nil
	}
	value, _ := lookup(output, ref.path)
	return value
}

// template resolves a text of an orchestration.
func (r *resolver) template(text string) any {
	t, err := parseTemplate(text)
	if err != nil { // the compiler has refused such a plan
		return nil
	}
	if path, ok := t.whole(); ok {
		value, _ := r.path(path)
		return value
	}
	var b strings.Builder
	for _, f := range t {
		if f.path == nil {
			b.WriteString(f.text)
			continue
		}
		value, ok := r.path(f.path)
		if !ok {
			r.fail(f.path)
			return nil
		}
		switch v := value.(type) {
		case string:
			b.WriteString(v)
		default:
			encoded, err := events.AppendJSON(nil, v)
			if err != nil {
				r.fail(f.path)
				return nil
			}
			b.Write(encoded)
		}
	}
	return b.String()
}

// path returns the value that a path leads to; ok is false if there is none.
func (r *resolver) path(path []string) (value any, ok bool) {
	name, isResult, rest, ok := r.names.find(path)
	if !ok {
		return nil, false
	}
	if isResult {
		value, ok = r.steps[name]
	} else {
		value, ok = r.names.bindings[name]
	}
	if !ok {
		return nil, false
	}
	return lookup(value, rest)
}

func (r *resolver) fail(path []string) {
	if r.err == nil {
		r.err = &events.Error{Code: events.CodeBadArgs, Msg: fmt.Sprintf(
			"step %s: %s has no value, and a text cannot be made without it", r.call.ID, clip(strings.Join(path, ".")))}
	}
}

// lookup follows a path: names of an object, indexes of an array. A value that is not there is null,
// with ok false.
func lookup(value any, path []string) (found any, ok bool) {
	for _, segment := range path {
		switch v := value.(type) {
		case map[string]any:
			if value, ok = v[segment]; !ok {
				return nil, false
			}
		case []any:
			i, isIndex := arrayIndex(segment)
			if !isIndex || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}
