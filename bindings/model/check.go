package model

import "encoding/json"

// One walk over a value and its compiled type: coerce, apply the rules, fill defaults, collect violations. Steps
// are counted, so that a hostile value costs bounded time. The rules of each type are in files next to it.

// Bounds of one check. Unions can make a checker look at the same value again and again, in
// the worst case exponentially often, so the work is counted, not only the size of the input.
const (
	maxSteps = 300_000 // visits of (node, value)
	maxDepth = 128     // nesting of values and alternatives
)

// tooComplex is the only violation of a check that exceeded its bounds.
func tooComplex() Violation {
	return Violation{Rule: RuleTooComplex, Expected: "a smaller or flatter value, the check takes too long", GotType: "object"}
}

// exactness is how far a value had to be coerced, as pydantic's smart unions count it.
type exactness uint8

const (
	exact  exactness = iota
	strict           // an integer taken as a float
	loose            // coerced, or an object taken as a model
)

// noFields stands for "no model was checked", which is not the same as "a model without keys".
const noFields = -1

// checker is the state of one check.
type checker struct {
	violations []Violation
	quiet      int  // inside the trial of an alternative: note only that there is a violation
	failed     bool // a violation was seen while quiet
	fixed      int  // inside alternatives that must not coerce
	names      bool // a key in another spelling of a field is that field
	strict     bool // values are looked at as they are: nothing is coerced, completed or dropped
	steps      int
	depth      int
	worst      exactness // of the values seen since the last reset
	set        int       // known keys found in models since the last reset, or noFields
}

// value checks v against n. It returns the value to use and whether that is another one.
// With a violation the returned value is not valid.
func (c *checker) value(n *node, v any) (any, bool) {
	c.steps++
	c.depth++
	defer func() { c.depth-- }()
	if c.steps > maxSteps || c.depth > maxDepth {
		c.steps = maxSteps + 1 // final: nothing later may look like a result
		c.add(tooComplex())
		return v, false
	}
	changed := false
	t := typeOf(v)
	if !n.admits(t, v) {
		next, ok := c.coerce(n, v)
		if !ok {
			c.add(Violation{Rule: RuleType, Expected: n.expected(), GotType: typeName(v)})
			return v, false
		}
		v, t, changed = next, typeOf(next), true
	}
	before := c.mark()
	next, ch := c.rules(n, t, v)
	if c.mark() != before {
		return v, false
	}
	v, changed = next, changed || ch
	if len(n.alts) > 0 {
		next, ch := c.union(n, v)
		v, changed = next, changed || ch
	}
	for _, part := range n.all {
		if c.done() {
			break
		}
		next, ch := c.value(part, v)
		v, changed = next, changed || ch
	}
	return v, changed
}

// coerce applies the coercion table.
func (c *checker) coerce(n *node, v any) (any, bool) {
	if _, isNumber := v.(json.Number); isNumber && !n.lax && n.types&tInteger != 0 {
		return engineInteger(v) // JSON Schema admits 5.0 as an integer: only its spelling changes
	}
	if n.convert == nil || c.fixed > 0 || c.strict {
		return nil, false
	}
	next, ok := n.convert(v)
	if !ok {
		return nil, false
	}
	if lit, isNumber := v.(json.Number); isNumber && n.types&tNumber != 0 && shapeOf(string(lit)) == integerLiteral {
		c.bend(strict)
	} else {
		c.bend(loose)
	}
	return next, true
}

// rules applies the rules of n for values of type t.
func (c *checker) rules(n *node, t types, v any) (any, bool) {
	changed := false
	if n.enum != nil {
		next, ch, ok := n.enum.find(v, n.lax)
		if !ok {
			c.add(n.enum.violation(v))
			return v, false
		}
		v, changed, t = next, ch, typeOf(next)
	}
	switch t {
	case tString:
		if n.str != nil {
			s, _ := v.(string)
			c.text(n.str, s)
		}
	case tNumber:
		if n.num != nil {
			lit, _ := v.(json.Number)
			c.number(n.num, string(lit))
		}
	case tArray:
		if n.arr != nil {
			list, _ := v.([]any)
			return c.array(n.arr, list, v, changed)
		}
	case tObject:
		if n.obj != nil {
			obj, _ := v.(map[string]any)
			return c.object(n, obj, v, changed)
		}
	default:
	}
	return v, changed
}

// add notes a violation.
func (c *checker) add(f Violation) {
	if c.quiet > 0 {
		c.failed = true
		return
	}
	if len(c.violations) < MaxViolations {
		c.violations = append(c.violations, f)
	}
}

// mark changes whenever a violation is noted.
func (c *checker) mark() int {
	if c.failed {
		return len(c.violations) + 1
	}
	return len(c.violations)
}

// done reports that more violations would not be noted.
func (c *checker) done() bool {
	return c.failed || c.steps > maxSteps || len(c.violations) >= MaxViolations
}

// under puts the violations noted since mark below a key of their object or list.
func (c *checker) under(mark int, key string) {
	for i := mark; i < len(c.violations); i++ {
		c.violations[i].Path = "/" + pathToken(key) + c.violations[i].Path
	}
}

func (c *checker) bend(e exactness) { c.worst = max(c.worst, e) }

func (c *checker) found(keys int) { c.set = max(c.set, 0) + keys }
