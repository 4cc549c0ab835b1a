package model

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Closed sets of values: how they are compared (numbers by value, in MozaiksAI's column also 1 and true), which
// value a text or number of other spelling stands for, and how they are listed in a violation.

// maxAllowed bounds how many allowed values a violation lists.
const maxAllowed = 50

// enum is a closed set of values from the manifest.
type enum struct {
	values  []any
	strings map[string]struct{} // the strings among values, as most sets have only strings
	keys    map[string]any      // the others, by appendKey
	rule    string              // RuleEnum or RuleConst
	text    string              // for violations: the set as text
}

func newEnum(values []any, rule string, lax bool) *enum {
	e := &enum{values: values, strings: map[string]struct{}{}, keys: map[string]any{}, rule: rule}
	for _, v := range values {
		if s, ok := v.(string); ok {
			e.strings[s] = struct{}{}
			continue
		}
		key := enumKey(v, lax)
		if _, twice := e.keys[key]; !twice {
			e.keys[key] = v
		}
	}
	e.text = e.describe()
	return e
}

// enumKey compares numbers by value; MozaiksAI's literals compare booleans as 0 and 1 as well.
func enumKey(v any, lax bool) string {
	if b, ok := v.(bool); ok && lax {
		v = boolNumber(b, "1", "0")
	}
	return string(appendKey(nil, v))
}

// Equal reports whether two value trees are the same JSON value. Numbers are compared by their value: 1 is 1.0.
func Equal(a, b any) bool { return enumKey(a, false) == enumKey(b, false) }

// find returns the member of the set that equals v. It differs from v at most in spelling
// (1.0 for 1, and 1 for true in MozaiksAI's column).
func (e *enum) find(v any, lax bool) (member any, changed, ok bool) {
	switch v := v.(type) {
	case string:
		_, ok = e.strings[v]
		return v, false, ok
	case nil:
		_, ok = e.keys["null"]
		return nil, false, ok
	}
	if len(e.keys) == 0 {
		return nil, false, false
	}
	member, ok = e.keys[enumKey(v, lax)]
	if !ok {
		return nil, false, false
	}
	switch v := v.(type) {
	case bool, json.Number:
		return member, member != v, true
	default:
		return v, false, true
	}
}

// listed returns the allowed values for a violation.
func (e *enum) listed() []any {
	listed := make([]any, 0, min(len(e.values), maxAllowed))
	for _, v := range e.values[:min(len(e.values), maxAllowed)] {
		listed = append(listed, clone(v))
	}
	return listed
}

// violation is the one of a value that is not in the set.
func (e *enum) violation(v any) Violation {
	f := Violation{Rule: e.rule, Expected: e.text, GotType: typeName(v), Allowed: e.listed()}
	if s, ok := v.(string); ok {
		f.DidYouMean = closestName(s, e.names())
	}
	return f
}

// names returns the strings of the set in manifest order.
func (e *enum) names() []string {
	names := make([]string, 0, len(e.strings))
	for _, v := range e.values {
		if s, ok := v.(string); ok {
			names = append(names, s)
		}
	}
	return names
}

// describe writes the set as "one of "a", "b"", shortened when long.
func (e *enum) describe() string {
	const long = 200 // bytes
	var b strings.Builder
	if len(e.values) != 1 {
		b.WriteString("one of ")
	}
	for i, v := range e.values {
		if i > 0 {
			b.WriteString(", ")
		}
		if i >= maxNamed || b.Len() > long {
			b.WriteString("… (" + strconv.Itoa(len(e.values)) + " values)")
			break
		}
		text, err := json.Marshal(v)
		if err != nil || len(text) > long {
			text = []byte(typeName(v))
		}
		b.Write(text)
	}
	return b.String()
}
