package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oneturn/oneturn/diag"
)

// A schema can be well formed and contradict itself: a default that is not what it stands for, a
// closed set whose values have another type, a minimum over its maximum. Such a schema compiles,
// since it may come from another program; its contradictions are problems for its author.

// Problems returns where the model contradicts itself: errors for what can never be met or used,
// warnings for what is met in part. Field is a JSON pointer into the schema. The defaults among the
// errors are not filled in.
func (m *Model) Problems() []Problem { return slices.Clone(m.problems) }

// Problems is [Model.Problems].
func (t *Value) Problems() []Problem { return t.model.Problems() }

// maxContradictions bounds what is reported about one model.
const maxContradictions = 50

// contradictions looks through the compiled sub-schemas, and settles the defaults.
func (s *schemaCompiler) contradictions(name string) []Problem {
	c := &contradictions{name: name, places: make(map[*node]*sub, len(s.nodes)), seen: map[*node]bool{}}
	for at, n := range s.nodes {
		c.places[n] = at
	}
	subs := slices.SortedFunc(maps.Keys(s.nodes), func(a, b *sub) int { return cmp.Compare(a.pointer, b.pointer) })
	for _, at := range subs {
		n := s.nodes[at]
		c.values(n, at.pointer)
		c.bounds(n, at.pointer)
		c.unmeetable(n, at.pointer)
		c.misspelt(at)
		c.requiredUnknown(at)
		left := maxParts
		if n.types != tNothing && n.types&common(n, &left) == tNothing {
			c.add(diag.SeverityError, at.pointer, "no value has all the types that its parts ask for", "correct the types of its `allOf` and `$ref`")
		}
		c.defaults(n)
	}
	return c.found
}

type contradictions struct {
	name   string
	places map[*node]*sub // of the nodes whose defaults are not settled
	seen   map[*node]bool
	found  []Problem
}

// defaults settles the defaults of a node after those inside of it, which complete them.
func (c *contradictions) defaults(n *node) {
	at := c.places[n]
	if n.obj == nil || at == nil {
		return
	}
	delete(c.places, n)
	for i := range n.obj.fields {
		f := &n.obj.fields[i]
		c.inside(f.node)
		if f.hasDefault {
			c.settle(f, at.props[f.name].pointer)
		}
	}
}

// inside settles the defaults that a value of a node may be completed with.
func (c *contradictions) inside(n *node) {
	if n == nil || c.seen[n] {
		return
	}
	c.seen[n] = true
	c.defaults(n)
	for _, part := range slices.Concat(n.all, n.alts) {
		c.inside(part)
	}
	if n.arr != nil {
		c.inside(n.arr.items)
	}
	if n.obj != nil {
		c.inside(n.obj.extra)
	}
}

func (c *contradictions) add(sev diag.Severity, place, message, fix string) {
	if len(c.found) < maxContradictions {
		c.found = append(c.found, problem(c.name, place, sev, message, fix))
	}
}

// values checks the members of a closed set against the other rules for the same value.
func (c *contradictions) values(n *node, place string) {
	if n.enum == nil {
		return
	}
	key, fits := n.enum.rule, 0
	var wrong []string
	var first Violation
	for _, v := range n.enum.values {
		_, violations := checkValue(n, v, true)
		if len(violations) == 0 {
			fits++
			continue
		}
		if first.Rule == "" {
			first = violations[0]
		}
		wrong = append(wrong, literal(v))
	}
	why := strings.TrimSuffix(strings.TrimPrefix(first.line(), ": "), ".")
	switch {
	case len(wrong) == 0:
	case fits == 0:
		c.add(diag.SeverityError, place+"/"+key, "no value of `"+key+"` satisfies the other rules: "+why, "correct the values, or the rule that excludes them")
	default:
		c.add(diag.SeverityWarning, place+"/"+key, fmt.Sprintf("`%s` has values that the other rules exclude: %s (%s)", key, listed(wrong), why),
			"remove them, or correct the rule that excludes them")
	}
}

// bounds compares lower and upper bounds.
func (c *contradictions) bounds(n *node, place string) {
	report := func(low, high string) {
		c.add(diag.SeverityError, place+"/"+low, "no value satisfies both `"+low+"` and `"+high+"`", "swap or correct them")
	}
	n.clashes(report)
}

// clashes reports the pairs of bounds that no value satisfies.
func (n *node) clashes(report func(low, high string)) {
	if r := n.num; r != nil {
		for _, pair := range []struct {
			low, high   string
			least, most *decimal
			sameBad     bool // one value between them is none
		}{
			{low: "minimum", high: "maximum", least: r.min, most: r.max},
			{low: "exclusiveMinimum", high: "maximum", least: r.above, most: r.max, sameBad: true},
			{low: "minimum", high: "exclusiveMaximum", least: r.min, most: r.below, sameBad: true},
			{low: "exclusiveMinimum", high: "exclusiveMaximum", least: r.above, most: r.below, sameBad: true},
		} {
			if pair.least == nil || pair.most == nil {
				continue
			}
			if d := pair.least.compare(pair.most); d > 0 || d == 0 && pair.sameBad {
				report(pair.low, pair.high)
			}
		}
	}
	if r := n.str; r != nil && r.max >= 0 && r.min > r.max {
		report("minLength", "maxLength")
	}
	if r := n.arr; r != nil && r.max >= 0 && r.min > r.max {
		report("minItems", "maxItems")
	}
	if r := n.obj; r != nil && r.max >= 0 && r.min > r.max {
		report("minProperties", "maxProperties")
	}
}

// settle makes a default what [Model.Check] would make of it. One that does not fit is dropped; a
// default of null stands for "nothing given" and stays.
func (c *contradictions) settle(f *field, place string) {
	value, violations := checkValue(f.node, f.value, false)
	switch {
	case len(violations) == 0:
		f.value = value
	case f.value == nil:
		c.add(diag.SeverityWarning, place+"/default", "the default null does not fit: "+reasonOf(violations), "allow null, for example type: [string, \"null\"], or remove the default")
	default:
		c.add(diag.SeverityError, place+"/default", "the default "+literal(f.value)+" does not fit: "+reasonOf(violations), f.node.fixDefault(f.value))
		f.value, f.hasDefault = nil, false
	}
}

// fixDefault returns what to write instead of a default.
func (n *node) fixDefault(v any) string {
	switch {
	case n.enum != nil:
		return "write " + n.enum.text
	case n.types == tBool:
		return "write true or false"
	case n.types == tString && typeOf(v) != tArray && typeOf(v) != tObject:
		return "put it in quotes"
	default:
		return "write a value of type " + n.expected() + ", or remove the default"
	}
}

// checkValue checks one value against one node.
func checkValue(n *node, v any, strict bool) (any, []Violation) {
	c := checker{set: noFields, strict: strict}
	out, _ := c.value(n, v)
	if c.steps > maxSteps {
		return v, nil // too large to check
	}
	return out, c.violations
}

// reasonOf is the text of the first violation.
func reasonOf(violations []Violation) string {
	text := strings.TrimPrefix(violations[0].Path+violations[0].line(), ": ")
	return strings.TrimSuffix(text, ".")
}

// common returns the types that all parts of a node admit.
func common(n *node, left *int) types {
	t := n.types
	for _, part := range n.all {
		if *left--; *left > 0 {
			t &= common(part, left)
		}
	}
	return t
}

// literal shows a value of a manifest, shortened.
func literal(v any) string {
	const long = 80
	text, err := json.Marshal(v)
	if err != nil || len(text) > long {
		return "of type " + typeName(v)
	}
	return string(text)
}

// listed joins the first of some texts.
func listed(texts []string) string {
	const most = 5
	if len(texts) > most {
		return strings.Join(texts[:most], ", ") + ", …"
	}
	return strings.Join(texts, ", ")
}
