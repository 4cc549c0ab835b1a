package model

import (
	"encoding/json"
	"maps"
	"slices"
)

// A [Model] checks objects: what an agent produced, or the arguments of a tool. [Model.Check] returns the object
// to use or the violations; [Feedback] makes of these a text for the model.

// Model is one compiled model. It is immutable and safe for concurrent use.
type Model struct {
	Name string // as the manifest names it

	root   *node
	fields []string
	schema json.RawMessage
	rest   *fullCheck // what the tree does not cover, nil when it covers everything

	problems []Problem // see [Model.Problems]
}

// Check coerces, completes and validates v in one pass. Where keys that the model does not list are
// kept, one in another spelling of a field ([Plain]) is that field. Check returns the object for the tool, or
// the violations (at most [MaxViolations]) and no object. The input is never modified; the output
// shares unchanged sub-trees with it, so treat what is below the top level as read-only.
func (m *Model) Check(v any) (map[string]any, []Violation) {
	out, changed, violations := m.Conform(v)
	if !changed {
		out = maps.Clone(out)
	}
	return out, violations
}

// ViolationsWithin returns the violations that [Model.Check] finds, for callers who check many values
// with one budget. Steps are the visits that the check may take at most; those that it took are
// subtracted. If they are not enough, ok is false and nothing is known about v.
func (m *Model) ViolationsWithin(v any, steps *int) (violations []Violation, ok bool) {
	if *steps <= 0 {
		return nil, false
	}
	if _, isObject := v.(map[string]any); !isObject {
		return []Violation{{Rule: RuleType, Expected: "object", GotType: typeName(v)}}, true
	}
	start := maxSteps - min(*steps, maxSteps)
	c := checker{set: noFields, names: true, steps: start}
	out, _ := c.value(m.root, v)
	*steps -= c.steps - start
	switch {
	case c.steps > maxSteps:
		return nil, false
	case len(c.violations) > 0 || m.rest == nil:
		return c.violations, true
	}
	most := min(*steps, maxCost)
	left := m.rest.cost(m.rest.root, out, most)
	if *steps -= most - left; left < 0 {
		return nil, false
	}
	return m.rest.check(out), true
}

// Conform is [Model.Check] for callers who only read: it also reports whether the object is
// another one than v. If not, it is v itself.
func (m *Model) Conform(v any) (out map[string]any, changed bool, violations []Violation) {
	if _, ok := v.(map[string]any); !ok {
		return nil, false, []Violation{{Rule: RuleType, Expected: "object", GotType: typeName(v)}}
	}
	checked, changed, violations := m.run(v, checker{set: noFields, names: true})
	if len(violations) > 0 {
		return nil, false, violations
	}
	out, ok := checked.(map[string]any)
	if !ok {
		return nil, false, []Violation{{Rule: RuleType, Expected: "object", GotType: typeName(checked)}}
	}
	return out, changed, nil
}

// conform checks a value of any type.
func (m *Model) conform(v any) (out any, changed bool, violations []Violation) {
	return m.run(v, checker{set: noFields})
}

func (m *Model) run(v any, c checker) (out any, changed bool, violations []Violation) {
	out, changed = c.value(m.root, v)
	switch {
	case c.steps > maxSteps:
		return nil, false, []Violation{tooComplex()}
	case len(c.violations) > 0:
		return nil, false, c.violations
	case m.rest != nil:
		if violations := m.rest.check(out); len(violations) > 0 {
			return nil, false, violations
		}
	}
	return out, changed, nil
}

// Fields returns the names of the top-level fields in manifest order.
func (m *Model) Fields() []string { return slices.Clone(m.fields) }

// Optional returns the [Model.Fields] that the object of [Model.Check] may lack: they are neither
// required nor have a default.
func (m *Model) Optional() []string {
	var names []string
	for _, name := range m.fields {
		if !m.root.gives(name, 0) {
			names = append(names, name)
		}
	}
	return names
}

// gives reports whether every object that the node admits has a member of this name.
func (n *node) gives(name string, depth int) bool {
	const deepest = 16 // of rules that look at the same object
	inner := func(part *node) bool { return depth < deepest && part.gives(name, depth+1) }
	if n.obj != nil {
		i := slices.IndexFunc(n.obj.fields, func(f field) bool { return f.name == name })
		if i >= 0 && (n.obj.fields[i].required || n.obj.fields[i].hasDefault) {
			return true
		}
	}
	if slices.ContainsFunc(n.all, inner) {
		return true
	}
	return len(n.alts) > 0 && !slices.ContainsFunc(n.alts, func(part *node) bool { return !inner(part) })
}

// JSONSchema returns the model as JSON Schema draft 2020-12. It refers to nothing outside
// itself. It describes what a producer should send; [Model.Check] accepts more by coercion.
func (m *Model) JSONSchema() json.RawMessage { return slices.Clone(m.schema) }
