package model

import (
	"maps"
	"slices"
)

// Objects: the declared fields first, in the order of the manifest, then all other keys. The input is never
// changed; a copy is made when the first member changes.

// object applies the rules for objects: the fields in manifest order, then the other keys.
// The output is a new map only if a member changes, comes or goes.
func (c *checker) object(n *node, in map[string]any, v any, changed bool) (any, bool) {
	r := n.obj
	var out map[string]any
	if c.names {
		if named, renamed := c.respell(r, in); renamed {
			in, v, changed = named, named, true
			c.bend(loose)
		}
	}
	known := 0
	for i := range r.fields {
		if c.done() {
			return v, false
		}
		f := &r.fields[i]
		member, ok := in[f.name]
		if !ok {
			switch {
			case f.hasDefault && !c.strict:
				out = r.output(out, in, i)
				out[f.name] = clone(f.value)
				c.steps += weight(f.value)
			case f.required:
				c.add(missing(r, f, in))
			}
			continue
		}
		known++
		mark := len(c.violations)
		next, ch := c.value(f.node, member)
		if len(c.violations) > mark {
			c.under(mark, f.name)
		}
		if ch {
			out = r.output(out, in, i)
		}
		if out != nil {
			out[f.name] = next
		}
	}
	if known < len(in) {
		out = c.others(r, in, out)
	}
	if n.lax && r.extras == extrasDropped {
		c.bend(loose)
		c.found(known)
	} else if known > 0 {
		c.found(known)
	}
	if out == nil {
		out = in
	} else {
		v, changed = out, true
	}
	c.size(len(out), r.min, r.max, RuleMinProperties, RuleMaxProperties, "keys", "object")
	return v, changed
}

// output returns out, or makes it: with the members that the fields before i name, and with
// all others of in when they are kept.
func (r *objectRules) output(out, in map[string]any, i int) map[string]any {
	if out != nil {
		return out
	}
	if r.extras != extrasDropped {
		return maps.Clone(in)
	}
	out = make(map[string]any, len(r.fields))
	for _, f := range r.fields[:i] {
		if member, ok := in[f.name]; ok {
			out[f.name] = member
		}
	}
	return out
}

// others handles the keys that no field names.
func (c *checker) others(r *objectRules, in, out map[string]any) map[string]any {
	switch r.extras {
	case extrasDropped:
		if c.strict {
			c.unknown(r, in)
			return out
		}
		c.bend(loose)
		return r.output(out, in, len(r.fields))
	case extrasChecked:
		for _, key := range sortedKeys(in) {
			if _, isField := r.index[key]; isField {
				continue
			}
			if c.done() {
				return out
			}
			mark := len(c.violations)
			next, ch := c.value(r.extra, in[key])
			if len(c.violations) > mark {
				c.under(mark, printable(key))
			}
			if ch {
				out = r.output(out, in, len(r.fields))
				out[key] = next
			}
		}
	case extrasKept:
	}
	return out
}

// unknown notes the keys that no field names, where there may be none.
func (c *checker) unknown(r *objectRules, in map[string]any) {
	for _, key := range sortedKeys(in) {
		if _, isField := r.index[key]; !isField && !c.done() {
			c.add(Violation{
				Path: "/" + pathToken(printable(key)), Rule: RuleAdditionalProperties,
				Expected: "only keys of the schema", GotType: typeName(in[key]),
			})
		}
	}
}

// missing is the violation of a required field; it names the key that was probably meant for it.
func missing(r *objectRules, f *field, in map[string]any) Violation {
	violation := Violation{Path: "/" + pathToken(f.name), Rule: RuleRequired, Expected: f.node.shape(), GotType: "absent"}
	if f.node.enum != nil {
		violation.Expected, violation.Allowed = f.node.enum.text, f.node.enum.listed()
	}
	unknown := make([]string, 0, len(in))
	for key := range in {
		if _, isField := r.index[key]; !isField && printable(key) == key {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	if key := closestName(f.name, unknown); key != "" {
		violation.DidYouMean = f.name
		violation.Expected += ", under the key \"" + f.name + "\" instead of \"" + key + "\""
	}
	return violation
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// clone copies a default, so that outputs share nothing that a tool might change.
func clone(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = clone(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = clone(item)
		}
		return out
	default:
		return v
	}
}

// weight is what a default adds to the work of a check. Without it a message of empty objects
// would become hundreds of times as large.
func weight(v any) int {
	const perStep = 8 // bytes of text
	switch v := v.(type) {
	case string:
		return 1 + len(v)/perStep
	case []any:
		sum := 1
		for _, item := range v {
			sum += weight(item)
		}
		return sum
	case map[string]any:
		sum := 1
		for key, item := range v {
			sum += len(key)/perStep + weight(item)
		}
		return sum
	default:
		return 1
	}
}
