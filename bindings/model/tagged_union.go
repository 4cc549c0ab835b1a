package model

import (
	"slices"
	"strings"
)

// A union of objects usually has a field that distinguishes its variants, with another value or set of
// values in each. The violation of a value that fits none of them is the one of the variant that it names.

// tag is the field that distinguishes the variants of a union.
type tag struct {
	name     string
	variants []*node
	values   []*enum // of the field in each variant
}

// taggedViolation reports what is wrong with an object by the variant that its tag names, or that the
// tag is missing or names none. It reports nothing, and false, if the union has no tag.
func (c *checker) taggedViolation(n *node, obj map[string]any) bool {
	t := tagOf(variants(n, 0))
	if t == nil {
		return false
	}
	value, given := obj[t.name]
	for i, allowed := range t.values {
		if _, _, ok := allowed.find(value, n.lax); !given || !ok {
			continue
		}
		mark := len(c.violations)
		c.value(t.variants[i], obj)
		for j := range c.violations[mark:] {
			c.violations[mark+j].Expected += " (for " + t.name + " " + literal(value) + ")"
		}
		return len(c.violations) > mark
	}
	var all []any
	for _, allowed := range t.values {
		all = append(all, allowed.values...)
	}
	kinds := newEnum(all, RuleEnum, n.lax)
	violation := kinds.violation(value)
	if !given {
		violation.Rule, violation.GotType, violation.DidYouMean = RuleRequired, "absent", ""
	}
	violation.Path = "/" + pathToken(t.name)
	c.add(violation)
	return true
}

// variants returns the alternatives of a union that are objects, including those in inner unions.
func variants(n *node, depth int) []*node {
	const deepest = 8
	var all []*node
	for _, alt := range n.alts {
		switch {
		case len(alt.alts) > 0 && depth < deepest:
			all = append(all, variants(alt, depth+1)...)
		case alt.types&tObject != 0 && alt.enum == nil:
			all = append(all, alt)
		}
	}
	return all
}

// tagOf finds the tag of variants, nil if they have none or there is only one.
func tagOf(all []*node) *tag {
	if len(all) < 2 || all[0] == nil { //nolint:mnd // one variant needs no tag
		return nil
	}
	for _, f := range fieldsOf(all[0], 0) {
		t := &tag{name: f.name, variants: all}
		seen := map[string]bool{}
		for _, variant := range all {
			values := closedSet(variant, f.name)
			if values == nil {
				break
			}
			unique := true
			for _, v := range values.values {
				key := string(appendKey(nil, v))
				unique = unique && !seen[key]
				seen[key] = true
			}
			if !unique {
				break
			}
			t.values = append(t.values, values)
		}
		if len(t.values) == len(all) {
			return t
		}
	}
	return nil
}

// closedSet is the set of values of a field of a variant, nil if any value may be there.
func closedSet(n *node, name string) *enum {
	fields := fieldsOf(n, 0)
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return fields[i].node.enum
}

// fieldsOf returns the fields of an object and of the parts that it is made of.
func fieldsOf(n *node, depth int) []field {
	const deepest = 8
	var fields []field
	if n.obj != nil {
		fields = n.obj.fields
	}
	for _, part := range n.all {
		if depth < deepest {
			fields = append(slices.Clip(fields), fieldsOf(part, depth+1)...)
		}
	}
	return fields
}

// shape describes the values of a node: the values of a closed set, the required fields of an
// object, else its types.
func (n *node) shape() string {
	if n.enum != nil {
		return n.enum.text
	}
	if len(n.alts) > 0 {
		var all []string
		for _, alt := range n.alts {
			if text := alt.shape(); !slices.Contains(all, text) && len(all) < maxNamed {
				all = append(all, text)
			}
		}
		return strings.Join(all, " or ")
	}
	if n.types == tAny && n.obj == nil && len(n.all) > 0 {
		return n.all[0].shape()
	}
	if n.types&tObject == 0 || n.types == tAny {
		return n.types.names()
	}
	name, fields := "object", []string{}
	if n.model != "" {
		name = n.model + " object"
	}
	for _, f := range fieldsOf(n, 0) {
		if f.required && len(fields) < maxNamed {
			text := f.name
			if f.node.enum != nil && len(f.node.enum.values) == 1 {
				text += " " + f.node.enum.text
			}
			fields = append(fields, text)
		}
	}
	if len(fields) == 0 {
		return name
	}
	return name + " with " + strings.Join(fields, ", ")
}
