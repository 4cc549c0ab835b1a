package model

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/oneturn/oneturn/events"
)

// Keywords that the compiled tree does not cover are checked by a JSON Schema library, after the pass over the
// tree. Its cost is estimated before each check, and at load a schema that would make every check slow is refused.

// Bounds of the full schema check. Its library cannot be interrupted and builds an error for
// every visit that fails, so the visits are counted before it is called.
const (
	maxCost   = 100_000             // visits of (sub-schema, value), weighted
	probed    = 2                   // the part of the bounds that the sample value at load may take
	documents = "urn:oneturn:model" // base of references; nothing is loaded from anywhere
)

// external checks what the tree does not cover, with the whole JSON Schema.
type fullCheck struct {
	root   *sub
	schema *jsonschema.Schema
}

// newExternal compiles the document for the full check. References to anything outside of the
// document have been refused before; the loader refuses them again.
func newExternal(name string, tree any, root *sub) (ext *fullCheck, err error) {
	defer func() {
		if recover() != nil {
			ext, err = nil, refuse(name, events.CodeBadArgs, "", "it cannot be compiled", "use simpler rules")
		}
	}()
	object, _ := tree.(map[string]any)
	document := make(map[string]any, len(object))
	for key, v := range object {
		if key != "$schema" && key != "$id" {
			document[key] = v
		}
	}
	text, err := events.AppendJSON(nil, document)
	if err != nil {
		return nil, refuse(name, events.CodeBadArgs, "", "it cannot be written as JSON", "fix its values")
	}
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errNothingLoaded }
	if err := c.AddResource(documents, bytes.NewReader(text)); err != nil {
		return nil, refuse(name, events.CodeBadArgs, "", "it cannot be read", "fix its syntax")
	}
	schema, err := c.Compile(documents)
	if err != nil {
		return nil, refuse(name, events.CodeBadArgs, schemaPlace(err), "this is not valid JSON Schema 2020-12", "look the keyword up in JSON Schema draft 2020-12")
	}
	return &fullCheck{root: root, schema: schema}, nil
}

var errNothingLoaded = errors.New("schemas load nothing")

// schemaPlace returns the place in the schema that the meta-schema refuses, "" if unknown.
// The library's message is not used: it quotes values.
func schemaPlace(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return ""
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	return safePath(invalid.InstanceLocation)
}

// check validates a value that the tree has accepted.
func (e *fullCheck) check(v any) (violations []Violation) {
	if e.cost(e.root, v, maxCost) < 0 {
		return []Violation{tooComplex()}
	}
	defer func() {
		if recover() != nil {
			violations = []Violation{tooComplex()}
		}
	}()
	err := e.schema.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []Violation{tooComplex()}
	}
	violations = leaves(invalid, nil)
	slices.SortFunc(violations, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Rule, b.Rule))
	})
	violations = slices.CompactFunc(violations, func(a, b Violation) bool { return a.Path == b.Path && a.Rule == b.Rule })
	violations = violations[:min(len(violations), MaxViolations)]
	for i := range violations {
		violations[i].GotType = typeName(at(v, violations[i].Path))
	}
	return violations
}

// leaves collects pointer and keyword of the innermost errors, a bounded number of them.
func leaves(e *jsonschema.ValidationError, violations []Violation) []Violation {
	const most = 50 * MaxViolations
	if len(violations) >= most {
		return violations
	}
	if len(e.Causes) == 0 {
		rule := keywordOf(e.KeywordLocation)
		return append(violations, Violation{
			Path:     safePath(e.InstanceLocation),
			Rule:     rule,
			Expected: "a value that satisfies `" + rule + "` of the schema",
		})
	}
	for _, cause := range e.Causes {
		violations = leaves(cause, violations)
	}
	return violations
}

// keywordOf returns the last keyword of a location in a schema, skipping names and positions.
func keywordOf(location string) string {
	steps := strings.Split(location, "/")
	for _, step := range slices.Backward(steps) {
		switch step {
		case RuleType, RuleEnum, RuleConst, RuleMinimum, RuleMaximum, RuleExclusiveMinimum, RuleExclusiveMaximum,
			RuleMultipleOf, RuleMinLength, RuleMaxLength, RulePattern, RuleMinItems, RuleMaxItems, RuleUniqueItems,
			RuleMinProperties, RuleMaxProperties, RuleRequired, RuleAnyOf, "oneOf", "allOf", "not", "then", "else",
			"dependentRequired", "dependentSchemas", "dependencies", "additionalProperties", "patternProperties",
			"propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains",
			"prefixItems", "items":
			return step
		}
	}
	return "schema"
}

// safePath makes the library's instance location a path of ours: keys come from the data, so
// they are shown only when they are short and printable.
func safePath(location string) string {
	if location == "" {
		return ""
	}
	var b strings.Builder
	for step := range strings.SplitSeq(location[1:], "/") {
		plain, err := url.PathUnescape(step)
		if err != nil {
			plain = "*"
		}
		b.WriteString("/" + pathToken(printable(unescape(plain))))
	}
	return b.String()
}

// at returns the value at path, nil if it cannot be found.
func at(v any, path string) any {
	if path == "" {
		return v
	}
	for step := range strings.SplitSeq(path[1:], "/") {
		next, ok := stepInto(v, unescape(step))
		if !ok {
			return nil
		}
		v = next
	}
	return v
}

// cost subtracts from left what a check of v against s visits; below zero it is too much.
func (e *fullCheck) cost(s *sub, v any, left int) int {
	const text = 64 // bytes that cost as much as one visit
	if left -= s.weight; left < 0 {
		return left
	}
	for _, next := range s.same {
		if left < 0 {
			return left
		}
		left = e.cost(next, v, left)
	}
	switch v := v.(type) {
	case string:
		left -= len(v) / text
	case []any:
		for i, item := range v {
			if left < 0 {
				return left
			}
			left--
			if i < len(s.prefix) {
				left = e.cost(s.prefix[i], item, left)
			}
			for _, next := range s.items {
				left = e.cost(next, item, left)
			}
		}
	case map[string]any:
		for key, member := range v {
			if left < 0 {
				return left
			}
			left -= 1 + len(key)/text
			if next := s.props[key]; next != nil {
				left = e.cost(next, member, left)
			}
			for _, next := range s.members {
				left = e.cost(next, member, left)
			}
		}
	}
	return left
}

// probe refuses a schema of which a check of a small sample value takes a good part of what any
// check may take. It counts, so that a busy machine refuses nothing.
func (m *Model) probe(root *sub) error {
	sample := newSample().value(m.root, 0)
	c := checker{set: noFields}
	out, _ := c.value(m.root, sample)
	if c.steps > maxSteps/probed || m.rest != nil && m.rest.cost(root, out, maxCost/probed) < 0 {
		return refuse(m.Name, events.CodeTooLarge, "", "checks would take too long", "use fewer alternatives that nest")
	}
	return nil
}
