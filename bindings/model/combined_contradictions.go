package model

import (
	"math/big"

	"github.com/oneturn/oneturn/diag"
)

// Contradictions that show only when the parts of a value (allOf, references) are seen together: their bounds are
// united, and closed sets, multiples and sizes compared with the result. Contradictions of a single part are in
// schema_contradictions.go.

// unmeetable reports rules that each can be met, but not together: bounds and closed sets of the
// parts of a value, whole numbers or multiples between bounds that have none, more keys or items than there can be.
func (c *contradictions) unmeetable(n *node, place string) {
	left := maxParts
	whole, clash := unite(n, &left), false
	for _, part := range append([]*node{n}, n.all...) {
		part.clashes(func(string, string) { clash = true }) // they are reported where they stand
	}
	if !clash {
		whole.clashes(func(low, high string) {
			c.add(diag.SeverityError, place+"/allOf", "no value satisfies both `"+low+"` and `"+high+"` of its parts", "correct one of them")
			clash = true
		})
	}
	if low, high := whole.num.ends(); !clash && whole.num != nil && !whole.num.reached(whole.types == tInteger) {
		c.add(diag.SeverityError, place+"/"+low, "no "+whole.num.kind(whole.types == tInteger)+" lies between `"+low+"` and `"+high+"`", "correct one of them")
	}
	c.closedParts(n, place)
	c.shortage(n, place)
}

// maxParts bounds the parts of one value that are looked at: references make many of few, or endlessly many.
const maxParts = 200

// unite returns the bounds that all parts of a node set together.
func unite(n *node, left *int) *node {
	u := &node{types: n.types, num: &numberRules{}, str: &stringRules{max: noMax}, arr: &arrayRules{max: noMax}, obj: &objectRules{max: noMax}}
	u.tighten(n)
	for _, part := range n.all {
		if *left--; *left > 0 {
			inner := unite(part, left)
			u.types &= inner.types
			u.tighten(inner)
		}
	}
	return u
}

func (n *node) tighten(by *node) {
	if r := by.num; r != nil {
		n.num.min, n.num.above = larger(n.num.min, r.min, 1), larger(n.num.above, r.above, 1)
		n.num.max, n.num.below = larger(n.num.max, r.max, -1), larger(n.num.below, r.below, -1)
		if n.num.multiple == nil {
			n.num.multiple = r.multiple
		}
	}
	if r := by.str; r != nil {
		n.str.min, n.str.max = max(n.str.min, r.min), least(n.str.max, r.max)
	}
	if r := by.arr; r != nil {
		n.arr.min, n.arr.max = max(n.arr.min, r.min), least(n.arr.max, r.max)
	}
	if r := by.obj; r != nil {
		n.obj.min, n.obj.max = max(n.obj.min, r.min), least(n.obj.max, r.max)
	}
}

// larger returns the larger of two bounds, with sign -1 the smaller; nil is none.
func larger(a, b *decimal, sign int) *decimal {
	if a == nil || b != nil && sign*b.compare(a) > 0 {
		return b
	}
	return a
}

// least returns the smaller of two maxima; a negative one is none.
func least(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// ends names the bounds that count.
func (r *numberRules) ends() (low, high string) {
	low, high = "minimum", "maximum"
	if r == nil {
		return low, high
	}
	if r.min == nil || r.above != nil && r.above.compare(r.min) >= 0 {
		low = "exclusiveMinimum"
	}
	if r.max == nil || r.below != nil && r.below.compare(r.max) <= 0 {
		high = "exclusiveMaximum"
	}
	return low, high
}

func (r *numberRules) kind(whole bool) string {
	if whole && r.multiple == nil {
		return "whole number"
	}
	return "multiple of `multipleOf`"
}

// reached reports whether a number lies between both bounds: a whole one, or a multiple.
func (r *numberRules) reached(whole bool) bool {
	low, high := larger(r.min, r.above, 1), larger(r.max, r.below, -1)
	if low == nil || high == nil || !whole && r.multiple == nil {
		return true
	}
	step := big.NewRat(1, 1)
	if m := rational(r.multiple); m != nil && m.Sign() > 0 && (!whole || m.IsInt()) {
		step = m
	}
	from, to := rational(low), rational(high)
	if from == nil || to == nil {
		return true
	}
	steps := new(big.Rat).Quo(from, step)
	count := new(big.Int).Div(steps.Num(), steps.Denom()) // rounded down: the denominator is positive
	first := new(big.Rat).Mul(new(big.Rat).SetInt(count), step)
	if first.Cmp(from) < 0 || first.Cmp(from) == 0 && r.above != nil && r.above.compare(low) == 0 {
		first.Add(first, step)
	}
	if sign := first.Cmp(to); sign != 0 {
		return sign < 0
	}
	return r.below == nil || r.below.compare(high) != 0
}

// rational is a bound as a fraction; nil for none, and for one whose exponent is too large to be written out.
func rational(d *decimal) *big.Rat {
	const longest = 400
	if d == nil || len(d.text()) > longest {
		return nil
	}
	r, ok := new(big.Rat).SetString(d.text())
	if !ok {
		return nil
	}
	return r
}

// closedParts checks the closed sets of a node's parts against the whole node.
func (c *contradictions) closedParts(n *node, place string) {
	if n.enum != nil {
		return
	}
	for _, part := range n.all {
		if part.enum == nil {
			continue
		}
		own, fits := 0, 0
		var first Violation
		for _, v := range part.enum.values {
			if _, violations := checkValue(part, v, true); len(violations) == 0 {
				own++
			}
			if _, violations := checkValue(n, v, true); len(violations) == 0 {
				fits++
			} else if first.Rule == "" {
				first = violations[0]
			}
		}
		if own > 0 && fits == 0 {
			c.add(diag.SeverityError, place+"/allOf", "no value of `"+part.enum.rule+"` satisfies the other parts: "+reasonOf([]Violation{first}), "correct one of them")
			return
		}
	}
}

// shortage reports objects and lists that have to hold more than they may.
func (c *contradictions) shortage(n *node, place string) {
	if r := n.obj; r != nil && !n.lax {
		if r.extras == extrasDropped && r.min > len(r.fields) {
			c.add(diag.SeverityError, place+"/minProperties", "it asks for more keys than it has properties, and `additionalProperties: false` forbids others", "lower it, or add properties")
		}
		for _, f := range r.fields {
			if f.required && f.node.types == tNothing {
				c.add(diag.SeverityError, place+"/required", "it requires \""+f.name+"\", which no value satisfies", "remove it from required, or correct its schema")
			}
		}
	}
	if r := n.arr; r != nil && r.unique && r.items != nil && r.items.enum != nil && r.min > len(r.items.enum.values) {
		c.add(diag.SeverityError, place+"/minItems", "it asks for more items than there are different values", "lower it, or remove uniqueItems")
	}
}
