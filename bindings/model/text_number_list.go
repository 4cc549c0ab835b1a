package model

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The rules of texts, numbers and lists, as JSON Schema defines them. Objects, closed sets and unions have their
// own files.

// text applies the rules for strings.
func (c *checker) text(r *stringRules, s string) {
	if r.min > 0 || r.max >= 0 {
		c.size(utf8.RuneCountInString(s), r.min, r.max, RuleMinLength, RuleMaxLength, "characters", "string")
	}
	if r.pattern != nil && !r.pattern.MatchString(s) {
		c.add(Violation{Rule: RulePattern, Expected: "a string that matches " + r.pattern.String(), GotType: "string"})
	}
}

// size checks a count against its bounds; no maximum when most is negative.
func (c *checker) size(n, least, most int, low, high, unit, got string) {
	if n < least {
		c.add(Violation{Rule: low, Expected: "at least " + strconv.Itoa(least) + " " + unit, GotType: got})
	}
	if most >= 0 && n > most {
		c.add(Violation{Rule: high, Expected: "at most " + strconv.Itoa(most) + " " + unit, GotType: got})
	}
}

// number applies the rules for numbers, exactly.
func (c *checker) number(r *numberRules, lit string) {
	d, ok := parseDecimal(lit)
	if !ok {
		c.add(Violation{Rule: RuleType, Expected: "number", GotType: "unknown"})
		return
	}
	if r.min != nil && d.compare(r.min) < 0 {
		c.add(Violation{Rule: RuleMinimum, Expected: "at least " + r.min.text(), GotType: "number"})
	}
	if r.max != nil && d.compare(r.max) > 0 {
		c.add(Violation{Rule: RuleMaximum, Expected: "at most " + r.max.text(), GotType: "number"})
	}
	if r.above != nil && d.compare(r.above) <= 0 {
		c.add(Violation{Rule: RuleExclusiveMinimum, Expected: "more than " + r.above.text(), GotType: "number"})
	}
	if r.below != nil && d.compare(r.below) >= 0 {
		c.add(Violation{Rule: RuleExclusiveMaximum, Expected: "less than " + r.below.text(), GotType: "number"})
	}
	if r.multiple != nil && !d.isMultipleOf(r.multiple) {
		c.add(Violation{Rule: RuleMultipleOf, Expected: "a multiple of " + r.multiple.text(), GotType: "number"})
	}
}

// array applies the rules for lists. The output is a new list only if an item changed.
func (c *checker) array(r *arrayRules, in []any, v any, changed bool) (any, bool) {
	c.size(len(in), r.min, r.max, RuleMinItems, RuleMaxItems, "items", "array")
	if r.items != nil {
		var out []any
		for i, item := range in {
			if c.done() {
				break
			}
			mark := len(c.violations)
			next, ch := c.value(r.items, item)
			if len(c.violations) > mark {
				c.under(mark, strconv.Itoa(i))
			}
			if ch {
				if out == nil {
					out = slices.Clone(in)
				}
				out[i] = next
			}
		}
		if out != nil {
			in, v, changed = out, out, true
		}
	}
	if r.unique && !c.done() && !allUnique(in) {
		c.add(Violation{Rule: RuleUniqueItems, Expected: "items that all differ", GotType: "array"})
	}
	return v, changed
}

// allUnique compares by JSON equality.
func allUnique(list []any) bool {
	seen := make(map[string]struct{}, len(list))
	for _, item := range list {
		key := string(appendKey(nil, item))
		if _, twice := seen[key]; twice {
			return false
		}
		seen[key] = struct{}{}
	}
	return true
}

// appendKey appends a text that is the same for equal JSON values only.
func appendKey(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return strconv.AppendQuote(dst, v)
	case json.Number:
		d, ok := parseDecimal(string(v))
		if !ok {
			return strconv.AppendQuote(append(dst, '#'), string(v))
		}
		return d.key(dst)
	case []any:
		dst = append(dst, '[')
		for _, item := range v {
			dst = append(appendKey(dst, item), ',')
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for _, k := range sortedKeys(v) {
			dst = append(strconv.AppendQuote(dst, k), ':')
			dst = append(appendKey(dst, v[k]), ',')
		}
		return append(dst, '}')
	default:
		return append(dst, '?')
	}
}
