package model

import "slices"

// A value of a union is checked against each alternative; the best fit wins. If none fits, the violations of the
// alternative that was most likely meant are reported, see tagged_union.go too.

// union picks the alternative that fits v best, as pydantic's smart mode does: an exact match
// wins immediately; else the one with the most known keys, then the least bent, then the first.
func (c *checker) union(n *node, v any) (any, bool) {
	if n.fixed && typeOf(v) == tString {
		c.fixed++
		defer func() { c.fixed-- }()
	}
	worst, set, failed := c.worst, c.set, c.failed
	var best struct {
		found, changed bool
		value          any
		worst          exactness
		set            int
	}
	c.quiet++
	for _, alt := range n.alts {
		c.worst, c.set, c.failed = exact, noFields, false
		value, changed := c.value(alt, v)
		if c.failed {
			continue
		}
		better := !best.found || best.worst > c.worst
		if best.found && best.set != noFields && c.set != noFields && best.set != c.set {
			better = best.set < c.set
		}
		if better {
			best.found, best.changed, best.value, best.worst, best.set = true, changed, value, c.worst, c.set
		}
		if c.worst == exact && c.set == noFields {
			break
		}
	}
	c.quiet--
	c.worst, c.set, c.failed = worst, set, failed
	if !best.found {
		c.noAlternative(n, v)
		return v, false
	}
	c.bend(best.worst)
	if best.set != noFields {
		c.found(best.set)
	}
	return best.value, best.changed
}

// noAlternative reports why v matches no alternative: with the violations of the one that was most likely
// meant, or with the list of what is possible.
func (c *checker) noAlternative(n *node, v any) {
	if c.quiet > 0 {
		c.failed = true
		return
	}
	if obj, ok := v.(map[string]any); ok && c.taggedViolation(n, obj) {
		return
	}
	if likely := c.likely(n, v); likely != nil {
		before := len(c.violations)
		c.value(likely, v)
		orNullToo(n, likely, c.violations[before:])
		if len(c.violations) > before {
			return
		}
	}
	rule := RuleType
	for _, alt := range n.alts {
		if alt.admits(typeOf(v), v) {
			rule = RuleAnyOf
		}
	}
	expected := n.expected()
	if rule == RuleAnyOf {
		expected = n.shape()
	}
	c.add(Violation{Rule: rule, Expected: expected, GotType: typeName(v)})
}

// orNullToo adds to violations of the value itself, found by one alternative, that null would do as well.
func orNullToo(n, by *node, violations []Violation) {
	if by.types&tNull != 0 && by.enum == nil || !slices.ContainsFunc(n.alts, func(alt *node) bool { return alt.types == tNull }) {
		return
	}
	for i := range violations {
		if violations[i].Path == "" && violations[i].Expected != "" {
			violations[i].Expected += " or null"
		}
	}
}

// likely returns the only alternative of v's type or, for objects, the one whose fields name
// most keys of v; if none is of its type, one that v coerces to. Nil when that decides nothing.
func (c *checker) likely(n *node, v any) *node {
	var pick *node
	best, tie := -1, false
	obj, _ := v.(map[string]any)
	for _, alt := range n.alts {
		if !alt.admits(typeOf(v), v) {
			continue
		}
		score := 0
		if alt.obj != nil {
			for _, f := range alt.obj.fields {
				if _, ok := obj[f.name]; ok {
					score++
				}
			}
		}
		if score > best {
			pick, best, tie = alt, score, false
		} else if score == best {
			tie = true
		}
	}
	if tie {
		return nil
	}
	for _, alt := range n.alts {
		if pick != nil || alt.convert == nil || c.fixed > 0 {
			continue
		}
		if _, ok := alt.convert(v); ok {
			pick = alt
		}
	}
	return pick
}
