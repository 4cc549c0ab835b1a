package model

import (
	"encoding/json"
	"slices"
)

// Constraints of fields (enum, allowed_values, bounds, patterns) that MozaiksAI ignores and oneturn enforces. One
// that cannot be used is a warning and limits nothing.

// constrain adds what users expected and MozaiksAI ignored: closed sets, bounds, patterns.
// A constraint that cannot be used is a warning, because the manifest works without it there.
func (b *builder) constrain(at place, n *node, spec map[string]any) *node {
	n = b.closed(at, n, spec)
	for _, key := range sortedKeys(spec) {
		bound, ok := bounds(key)
		if !ok {
			continue
		}
		if !bound(n, spec[key]) {
			b.warn(at, "`"+key+"` cannot be used here and is ignored",
				"give it a value that fits, on a type that has such a bound")
		}
	}
	for _, part := range slices.Concat([]*node{n}, n.alts, n.all) {
		if part.model == "" {
			b.possibleBounds(at, part)
		}
	}
	return n
}

// possibleBounds removes bounds that no value satisfies.
func (b *builder) possibleBounds(at place, n *node) {
	clash := false
	n.clashes(func(low, high string) {
		clash = true
		b.warn(at, "no value satisfies both `"+low+"` and `"+high+"`, so they are ignored", "swap or correct them")
	})
	if !clash {
		return
	}
	n.num = nil
	if n.str != nil {
		n.str.min, n.str.max = 0, noMax
	}
	if n.arr != nil {
		n.arr.min, n.arr.max = 0, noMax
	}
}

// closed limits a field to `enum` or `allowed_values`. On a list they limit its items.
func (b *builder) closed(at place, n *node, spec map[string]any) *node {
	key := "enum"
	if spec[key] == nil {
		key = "allowed_values"
	}
	if spec[key] == nil || n.enum != nil || at.pending != nil && at.pending.def.Open {
		return n
	}
	values, ok := spec[key].([]any)
	if !ok || len(values) == 0 {
		b.warn(at, "`"+key+"` is not a list of values and is ignored", `write for example enum: ["a", "b"]`)
		return n
	}
	if n.types&tArray != 0 && n.types != tAny && !slices.ContainsFunc(values, func(v any) bool { return typeOf(v) == tArray }) {
		if n.arr.items != nil {
			if values = b.possibleValues(at, n.arr.items, key, values); values == nil {
				return n
			}
		}
		item := &node{types: tAny, lax: true, enum: newEnum(values, RuleEnum, true)}
		if n.arr.items != nil {
			item = both(n.arr.items, item)
		}
		n.arr.items = item
		return n
	}
	if values = b.possibleValues(at, n, key, values); values == nil {
		return n
	}
	if n.nullable() {
		values = append(slices.Clone(values), nil)
	}
	return both(n, &node{types: tAny, lax: true, enum: newEnum(values, RuleEnum, true)})
}

// possibleValues returns the values of a closed set, nil if none of them has a type of the node: a
// set that no value can meet limits nothing.
func (b *builder) possibleValues(at place, n *node, key string, values []any) []any {
	var wrong []string
	for _, v := range values {
		if v != nil && !n.mayBe(v) {
			wrong = append(wrong, literal(v))
		}
	}
	switch len(wrong) {
	case 0:
		return values
	case len(values):
		b.warn(at, "no value of `"+key+"` has the type of the field ("+n.expected()+"), so it is ignored", "correct the values or the type")
		return nil
	}
	b.warn(at, "`"+key+"` has values of another type than the field, which are never met: "+listed(wrong), "remove them, or correct the type")
	return values
}

// mayBe reports whether a value has a type that the node admits.
func (n *node) mayBe(v any) bool {
	if typeOf(v) == tNumber && n.types&tNumber != 0 { // of any spelling
		return true
	}
	if len(n.alts) == 0 {
		return n.admits(typeOf(v), v)
	}
	return slices.ContainsFunc(n.alts, func(alt *node) bool { return alt.mayBe(v) })
}

// nullable reports whether the manifest allows null for the field.
func (n *node) nullable() bool {
	return n.types&tNull != 0 && n.types != tAny || slices.ContainsFunc(n.alts, (*node).nullable)
}

// both is n, limited by the closed set of limit.
func both(n, limit *node) *node {
	if n.model == "" && n.enum == nil && len(n.alts) == 0 {
		n.enum = limit.enum
		return n
	}
	return &node{types: tAny, lax: true, all: []*node{n, limit}}
}

// bounds returns how to set the bound that key names. The setter reports whether it fits.
func bounds(key string) (set func(n *node, v any) bool, ok bool) {
	switch key {
	case "pattern", "regex":
		return setPattern, true
	case "min", "minimum", "ge":
		return func(n *node, v any) bool { return setLow(n, v, key == "min") }, true
	case "max", "maximum", "le":
		return func(n *node, v any) bool { return setHigh(n, v, key == "max") }, true
	case "exclusiveMinimum", "exclusive_minimum", "gt":
		return func(n *node, v any) bool { return setNumber(n, v, func(r *numberRules, d *decimal) { r.above = d }) }, true
	case "exclusiveMaximum", "exclusive_maximum", "lt":
		return func(n *node, v any) bool { return setNumber(n, v, func(r *numberRules, d *decimal) { r.below = d }) }, true
	case "multipleOf", "multiple_of":
		return func(n *node, v any) bool {
			return setNumber(n, v, func(r *numberRules, d *decimal) { r.multiple = d })
		}, true
	case "minLength", "min_length":
		return func(n *node, v any) bool { return setCount(n, v, tString|tArray, false) }, true
	case "maxLength", "max_length":
		return func(n *node, v any) bool { return setCount(n, v, tString|tArray, true) }, true
	case "minItems", "min_items":
		return func(n *node, v any) bool { return setCount(n, v, tArray, false) }, true
	case "maxItems", "max_items":
		return func(n *node, v any) bool { return setCount(n, v, tArray, true) }, true
	case "uniqueItems", "unique_items":
		return setUnique, true
	default:
		return nil, false
	}
}

// each applies set to n and its alternatives of the wanted types. Models are shared and keep
// their own rules.
func each(n *node, wanted types, set func(n *node)) bool {
	fits := false
	for _, alt := range slices.Concat([]*node{n}, n.alts, n.all) {
		if alt.model == "" && alt.types != tAny && alt.types&wanted != 0 {
			set(alt)
			fits = true
		}
	}
	return fits
}

func setPattern(n *node, v any) bool {
	source, _ := v.(string)
	re, _, reason := CompilePattern(source)
	return reason == "" && each(n, tString, func(n *node) { n.text().pattern = re })
}

// setLow sets a minimum: of the value of a number, of the size of a text or list.
func setLow(n *node, v any, sizes bool) bool {
	number := setNumber(n, v, func(r *numberRules, d *decimal) { r.min = d })
	size := sizes && setCount(n, v, tString|tArray, false)
	return number || size
}

func setHigh(n *node, v any, sizes bool) bool {
	number := setNumber(n, v, func(r *numberRules, d *decimal) { r.max = d })
	size := sizes && setCount(n, v, tString|tArray, true)
	return number || size
}

func setNumber(n *node, v any, set func(r *numberRules, d *decimal)) bool {
	lit, ok := v.(json.Number)
	if !ok {
		return false
	}
	d, ok := parseDecimal(string(lit))
	return ok && each(n, tInteger|tNumber, func(n *node) {
		if n.num == nil {
			n.num = &numberRules{}
		}
		set(n.num, &d)
	})
}

func setCount(n *node, v any, wanted types, most bool) bool {
	count, ok := intOf(v)
	return ok && each(n, wanted, func(n *node) {
		switch {
		case n.types&tArray != 0 && most:
			n.arr.max = count
		case n.types&tArray != 0:
			n.arr.min = count
		case most:
			n.text().max = count
		default:
			n.text().min = count
		}
	})
}

func setUnique(n *node, v any) bool {
	unique, ok := v.(bool)
	return ok && each(n, tArray, func(n *node) { n.arr.unique = unique })
}

// text returns the string rules of n, made when missing.
func (n *node) text() *stringRules {
	if n.str == nil {
		n.str = &stringRules{max: noMax}
	}
	return n.str
}
