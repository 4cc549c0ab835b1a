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
	return oneOf(len(p), func(i int) (place, declaration) {
		return allOf(len(p[i]), func(j int) (place, declaration) {
			return l.fieldOf(p[i][j], segment, 0)
		})
	})
}

// names returns the fields that are declared at p, sorted.
func (l *look) names(p place) []string {
	known := map[string]bool{}
	for _, alternative := range p {
		for _, node := range alternative {
			l.namesOf(node, known, 0)
		}
	}
	return slices.Sorted(maps.Keys(known))
}

func (l *look) namesOf(node any, known map[string]bool, depth int) {
	m, ok := node.(map[string]any)
	if !ok || !l.spend(depth) {
		return
	}
	properties, _ := m["properties"].(map[string]any)
	for name := range properties {
		known[name] = true
	}
	for _, part := range l.parts(m) {
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
	parts := l.parts(m)
	return allOf(1+len(parts), func(i int) (place, declaration) {
		if i == 0 {
			return l.ownField(m, segment)
		}
		branches := parts[i-1]
		return oneOf(len(branches), func(j int) (place, declaration) {
			return l.fieldOf(branches[j], segment, depth+1)
		})
	})
}

// allOf combines what n schemas state that all have to fit.
func allOf(n int, of func(int) (place, declaration)) (below place, d declaration) {
	for i := range n {
		child, stated := of(i)
		if stated == declared && d == declared {
			below = both(below, child)
		} else if stated == declared {
			below = child
		}
		d = max(d, stated)
	}
	return below, d
}

// oneOf combines what n schemas state one of which has to fit.
func oneOf(n int, of func(int) (place, declaration)) (below place, d declaration) {
	anyOpen := false
	for i := range n {
		child, stated := of(i)
		below = append(below, child...)
		d = max(d, stated)
		anyOpen = anyOpen || stated == open
	}
	switch {
	case d == declared && anyOpen:
		return append(below, []any{true}), declared
	case anyOpen:
		return nil, open
	default:
		return below, d
	}
}

// both is the place of a value that has to fit a and b.
func both(a, b place) place {
	if len(a)*len(b) > maxAlternatives {
		return place{{true}}
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
	for pattern, child := range patterns {
		if l.schema.matches(pattern, segment) {
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
