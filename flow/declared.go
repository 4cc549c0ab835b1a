package flow

import (
	"maps"
	"slices"
)

// This file finds out whether a schema declares a field. A schema answers in three ways, and the
// answers of its parts are combined: all parts of a schema apply to the value, so one that declares
// the field is enough; of the branches of anyOf and oneOf only one applies, so a branch that is open
// makes the field possible.

// declaration is what a schema states about a field, in the order in which parts override each other.
type declaration int

const (
	open       declaration = iota // nothing: the field is possible
	undeclared                    // other fields, or values without fields
	declared
)

// field returns the place of a field (or array index) below p and whether it is declared.
func (l *look) field(p place, segment string) (place, declaration) {
	var one oneOf
	for _, alternative := range p {
		var all allOf
		for _, node := range alternative {
			all.add(l, segment, node, 0)
		}
		one.add(all.below, all.declaration)
	}
	return one.result()
}

// names returns the fields that are declared at p, sorted; ok is false if they are too many to list.
func (l *look) names(p place) (names []string, ok bool) {
	known := map[string]bool{}
	for _, alternative := range p {
		for _, node := range alternative {
			l.namesOf(node, known, 0)
		}
	}
	return slices.Sorted(maps.Keys(known)), l.all.names >= 0
}

func (l *look) namesOf(node any, known map[string]bool, depth int) {
	m, ok := node.(map[string]any)
	if !ok || !l.spend(depth) {
		return
	}
	properties, _ := m["properties"].(map[string]any)
	if l.all.names -= len(properties); l.all.names < 0 {
		return
	}
	for name := range properties {
		known[name] = true
	}
	for part := range l.parts(m) {
		for _, branch := range part {
			l.namesOf(branch, known, depth+1)
		}
	}
}

// fieldOf is field for one schema.
func (l *look) fieldOf(node any, segment string, depth int) (place, declaration) {
	if node == false {
		return nil, undeclared
	}
	m, ok := node.(map[string]any)
	if !ok || !l.spend(depth) {
		return nil, open
	}
	var all allOf
	all.below, all.declaration = l.ownField(m, segment)
	for branches := range l.parts(m) {
		if len(branches) == 1 {
			all.add(l, segment, branches[0], depth+1)
			continue
		}
		var one oneOf
		for _, branch := range branches {
			one.add(l.fieldOf(branch, segment, depth+1))
		}
		below, d := one.result()
		all.combine(l, below, d)
	}
	return all.below, all.declaration
}

// allOf combines what schemas state that all have to fit.
type allOf struct {
	below       place
	declaration declaration
}

func (a *allOf) add(l *look, segment string, node any, depth int) {
	below, d := l.fieldOf(node, segment, depth)
	a.combine(l, below, d)
}

func (a *allOf) combine(l *look, below place, d declaration) {
	if d == declared && a.declaration == declared {
		a.below = l.both(a.below, below)
	} else if d == declared {
		a.below = below
	}
	a.declaration = max(a.declaration, d)
}

// oneOf combines what schemas state one of which has to fit.
type oneOf struct {
	below       place
	declaration declaration
	open        bool // one of them is
}

func (o *oneOf) add(below place, d declaration) {
	if o.below == nil {
		o.below = below
	} else {
		o.below = append(o.below, below...)
	}
	o.declaration = max(o.declaration, d)
	o.open = o.open || d == open
}

func (o *oneOf) result() (place, declaration) {
	switch {
	case o.declaration == declared && o.open:
		return append(o.below, []any{true}), declared
	case o.open:
		return nil, open
	default:
		return o.below, o.declaration
	}
}

// both is the place of a value that has to fit a and b.
func (l *look) both(a, b place) place {
	if len(a) == 1 && len(b) == 1 {
		return place{append(a[0], b[0]...)} // a is not used any more
	}
	if len(a)*len(b) > maxAlternatives {
		return place{{true}}
	}
	for _, x := range a {
		if !l.charge(len(b) * (1 + len(x)/8)) {
			return place{{true}}
		}
	}
	var product place
	for _, x := range a {
		for _, y := range b {
			product = append(product, slices.Concat(x, y))
		}
	}
	return product
}

// ownField is fieldOf for the keywords of m itself.
func (l *look) ownField(m map[string]any, segment string) (below place, d declaration) {
	types := namedTypes(m["type"])
	index, isIndex := arrayIndex(segment)
	object, item := types&typeObject != 0, types&typeArray != 0 && isIndex
	if !object && !item {
		return nil, undeclared // texts and numbers have no fields, arrays have indexes only
	}
	if object {
		below, d = l.ownProperty(m, segment)
	}
	if item { // the value may be either
		child, stated := ownItem(m, index)
		below, d = append(below, child...), max(d, stated)
	}
	return below, d
}

func (l *look) ownProperty(m map[string]any, segment string) (place, declaration) {
	properties, _ := m["properties"].(map[string]any)
	patterns, _ := m["patternProperties"].(map[string]any)
	var all []any
	if child, ok := properties[segment]; ok {
		all = append(all, child)
	}
	if len(patterns) > 0 && !l.charge(len(patterns)*(1+len(segment)/8)) {
		return nil, open
	}
	for pattern, child := range patterns {
		matches, unknown := l.matches(pattern, segment)
		switch {
		case unknown:
			return nil, open
		case matches:
			all = append(all, child)
		}
	}
	rest, stated := m["additionalProperties"]
	switch {
	case len(all) > 0:
		return place{all}, declared
	case stated && rest != false:
		return place{{rest}}, declared
	case stated || len(properties) > 0 || len(patterns) > 0:
		return nil, undeclared
	default:
		return nil, open
	}
}

func ownItem(m map[string]any, index int) (place, declaration) {
	prefix, items := list(m["prefixItems"]), m["items"]
	if older, ok := items.([]any); ok { // before draft 2020-12
		prefix, items = older, m["additionalItems"]
	}
	switch {
	case index < len(prefix):
		return place{{prefix[index]}}, declared
	case items != nil && items != false:
		return place{{items}}, declared
	case items == false || len(prefix) > 0:
		return nil, undeclared
	default:
		return nil, open
	}
}
