package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// Outputs returns the output of a call of the program; ok is false if it has none (yet).
type Outputs func(call string) (output any, ok bool)

// Resolve returns the arguments of a call: its references are replaced by the values that they lead
// to. A value that is not there is null; within a longer text it is an error with code bad_args.
// Values that are too large, too many or nested too deep for one call are an error with code
// too_large. Outputs are used as they are and never searched for references.
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
		arguments[name] = r.value(value, 1)
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
	calls   []*Call        // of a plan
	bytes   int            // of the values that references lead to
	nodes   int            // of the arguments
	err     error          // the first one

	deep     bool // a value is nested too deep
	rendered int  // bytes of the values that became a part of a text
}

// scope collects what the call can refer to: the same names as when the program was compiled.
func (r *resolver) scope() {
	r.names = names{results: map[string]result{}, bindings: r.p.Bindings}
	r.steps = map[string]any{}
	for i := range r.p.Steps {
		step := &r.p.Steps[i]
		if slices.ContainsFunc(step.Calls, func(c Call) bool { return c.ID == r.call.ID }) {
			r.names.group = step.Bindings
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

// value resolves a value that is nested in the arguments.
func (r *resolver) value(v any, depth int) any {
	r.nodes++
	switch v := v.(type) {
	case string:
		if r.p.Kind == KindPlan {
			return r.reference(v, depth)
		}
		return r.template(v, depth)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = r.value(item, depth+1)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = r.value(item, depth+1)
		}
		return out
	default:
		return v
	}
}

// reference resolves a text of a plan.
func (r *resolver) reference(text string, depth int) any {
	if isEscaped(text) {
		return text[1:]
	}
	if !isReference(text) {
		return text
	}
	ref, err := parseReference(text)
	if r.calls == nil {
		r.calls = r.p.Calls()
	}
	calls := r.calls
	if err != nil || ref.call >= len(calls) { // the compiler has refused such a plan
		return nil
	}
	output, ok := r.outputs(calls[ref.call].ID)
	if !ok {
		return nil
	}
	value, _ := lookup(output, ref.path)
	return r.counted(value, depth)
}

// template resolves a text of an orchestration.
func (r *resolver) template(text string, depth int) any {
	t, err := parseTemplate(text, maxReferences)
	if err != nil { // the compiler has refused such a plan
		return nil
	}
	if path, ok := t.whole(); ok {
		value, _ := r.path(path)
		return r.counted(value, depth)
	}
	parts, size := make([]any, 0, len(t)), 0
	for _, f := range t {
		if f.path == nil {
			size += len(f.text)
			parts = append(parts, f.text)
			continue
		}
		before := r.bytes
		value, ok := r.path(f.path)
		if !ok {
			r.fail(f.path)
		}
		parts = append(parts, r.counted(value, 0))
		if r.rendered += r.bytes - before; r.rendered > maxRendered {
			r.tooLarge()
		}
		if r.err != nil {
			return nil
		}
		size += r.bytes - before
	}
	b := make([]byte, 0, size)
	for i, part := range parts {
		if text, ok := part.(string); ok {
			b = append(b, text...)
			continue
		}
		var err error
		if b, err = events.AppendJSON(b, part); err != nil {
			r.err = fmt.Errorf("step %s: %s: %w", r.call.ID, strings.Join(t[i].path, "."), err)
			return nil
		}
	}
	return string(b)
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
		value, ok = r.names.binding(name)
	}
	if !ok {
		return nil, false
	}
	return lookup(value, rest)
}

// Bounds of the values that the references of one call lead to, in bytes: it may refer to a large
// output thousands of times.
const (
	maxResolved = 64 << 20 // the largest output that a manifest can allow
	maxRendered = 16 << 20 // within texts, which are copies
)

// maxArguments bounds the values of the arguments of one call, which an event has to hold.
const maxArguments = events.MaxNodes - 1000

// counted returns a value that a reference leads to and that is nested in the arguments, null if the
// arguments become too large.
func (r *resolver) counted(value any, depth int) any {
	if r.count(value, depth); r.bytes > maxResolved || r.nodes > maxArguments {
		r.tooLarge()
		return nil
	}
	if r.deep {
		r.deep = false
		if r.err == nil {
			r.err = &events.Error{Code: events.CodeTooLarge, Msg: fmt.Sprintf(
				"step %s: with the values that its references lead to, its arguments are nested more than %d deep: refer to less", r.call.ID, events.MaxDataDepth)}
		}
		return nil
	}
	return value
}

func (r *resolver) tooLarge() {
	if r.err == nil {
		r.err = &events.Error{Code: events.CodeTooLarge, Msg: fmt.Sprintf(
			"step %s: the values that its references lead to have more than %d MiB (%d MiB within texts) or %d values in all: refer to less",
			r.call.ID, maxResolved>>20, maxRendered>>20, maxArguments)}
	}
}

func (r *resolver) count(value any, depth int) {
	if r.nodes++; r.bytes > maxResolved || r.nodes > maxArguments {
		return
	}
	switch v := value.(type) {
	case string:
		r.bytes += len(v)
	case json.Number:
		r.bytes += len(v)
	case []any:
		r.deep = r.deep || depth >= events.MaxDataDepth
		for _, item := range v {
			r.count(item, depth+1)
		}
	case map[string]any:
		r.deep = r.deep || depth >= events.MaxDataDepth
		for key, item := range v {
			r.bytes += len(key)
			r.count(item, depth+1)
		}
	}
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
