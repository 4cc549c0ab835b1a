package flow

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
)

// Schema is a JSON Schema as the compiler reads it: not to check values, but to find out which
// fields it declares and which types they may have. It is immutable and safe for concurrent use.
//
// A field is declared by `properties`, `patternProperties`, or `additionalProperties` that is true
// or a schema, an array index by `prefixItems` or `items`, also through `$ref`, `allOf`, `anyOf` and
// `oneOf`. A part of the schema that declares no structure is open: any path below it is accepted.
// References lead only to places inside the schema; what any other leads to is open.
type Schema struct {
	root     any
	patterns sync.Map // pattern of patternProperties → pattern, up to maxKeptSteps in all
	kept     atomic.Int64
	targets  sync.Map // `$ref` → []any with the subschema that it leads to
}

// NewSchema reads a JSON Schema. Whether the schema is valid is not checked.
func NewSchema(schema json.RawMessage) (*Schema, error) {
	root, err := events.Decode(schema)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return &Schema{root: root}, nil
}

// Bounds of walks over schemas. What lies beyond them counts as open: it is checked when the value
// exists.
const (
	maxSchemaDepth  = 48
	maxSchemaVisits = 4096   // of one walk
	maxVisits       = 50_000 // of all walks of a compilation
	maxNames        = 20_000 // fields that all problems of a compilation list
	maxAlternatives = 64
)

// look is one walk over a schema, with its budget and the budget of the compilation.
type look struct {
	schema *Schema
	left   int
	all    *budgets
}

// budgets are what walks over schemas may still cost in a compilation.
type budgets struct {
	visits, names int
	patterns      map[string]pattern // of patternProperties that were charged for
}

// place is where a walk over a schema stands: the alternatives of a value, one of which has to fit.
// All schemas of an alternative have to fit.
type place [][]any

// look begins a walk at the root of the schema.
func (s *Schema) look(all *budgets) (*look, place) {
	return &look{schema: s, left: maxSchemaVisits, all: all}, place{{s.root}}
}

// spend counts a visited schema and reports whether the budget allows it.
func (l *look) spend(depth int) bool {
	return l.charge(1) && depth < maxSchemaDepth
}

// exhausted reports whether a budget is used up: what was not visited counts as open.
func (l *look) exhausted() bool { return l.left < 0 || l.all.visits < 0 }

// charge takes the cost of n more steps from the budgets and reports whether they allow it.
func (l *look) charge(n int) bool {
	l.left -= n
	l.all.visits -= n
	return !l.exhausted()
}

// types returns the types that values at p may have.
func (l *look) types(p place) typeSet {
	var union typeSet
	for _, alternative := range p {
		t := anyType
		for _, node := range alternative {
			t &= l.typesOf(node, 0)
		}
		union |= t
	}
	return union
}

func (l *look) typesOf(node any, depth int) typeSet {
	if node == false {
		return 0
	}
	m, ok := node.(map[string]any)
	if !ok || !l.spend(depth) {
		return anyType
	}
	t := namedTypes(m["type"])
	if values, ok := m["enum"].([]any); ok {
		var union typeSet
		for _, v := range values {
			union |= typeOfValue(v)
		}
		t &= union
	}
	if v, ok := m["const"]; ok {
		t &= typeOfValue(v)
	}
	for part := range l.parts(m) {
		var union typeSet
		for _, branch := range part {
			union |= l.typesOf(branch, depth+1)
		}
		t &= union
	}
	return t
}

// namedTypes returns the types that the value of `type` names.
func namedTypes(v any) typeSet {
	switch v := v.(type) {
	case string:
		return typeOfName(v)
	case []any:
		var t typeSet
		for _, name := range v {
			if s, ok := name.(string); ok {
				t |= typeOfName(s)
			}
		}
		if t != 0 {
			return t
		}
	}
	return anyType
}

// parts yields the subschemas that apply to the same value as m. Of each part one branch has to
// fit: a part of `$ref` or `allOf` has one branch, `anyOf` and `oneOf` are a part each.
func (l *look) parts(m map[string]any) iter.Seq[[]any] {
	return func(yield func([]any) bool) {
		if ref, ok := m["$ref"].(string); ok && !yield(l.schema.target(ref)) {
			return
		}
		all := list(m["allOf"])
		for i := range all {
			if !yield(all[i : i+1]) {
				return
			}
		}
		for _, keyword := range [...]string{"anyOf", "oneOf"} {
			if branches := list(m[keyword]); len(branches) > 0 && !yield(branches) {
				return
			}
		}
	}
}

// target returns the subschema that a `$ref` leads to, as a part.
func (s *Schema) target(ref string) []any {
	v, ok := s.targets.Load(ref)
	if !ok {
		v, _ = s.targets.LoadOrStore(ref, []any{s.find(ref)})
	}
	return list(v)
}

// find returns the subschema that a `$ref` leads to, true (any value) if it is not in the schema.
func (s *Schema) find(ref string) any {
	fragment, ok := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(fragment)
	if !ok || err != nil {
		return true
	}
	at := s.root
	for i, token := range strings.Split(pointer, "/") {
		if i == 0 {
			if token != "" { // an anchor
				return true
			}
			continue
		}
		switch node := at.(type) {
		case map[string]any:
			at = node[strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")]
		case []any:
			index, ok := arrayIndex(token)
			if !ok || index >= len(node) {
				return true
			}
			at = node[index]
		default:
			return true
		}
	}
	if at == nil {
		return true
	}
	return at
}

// stepsPerVisit is how many steps of a compiled pattern, for each 8 bytes of text, cost as much as a visited schema.
const stepsPerVisit = 16

// pattern is a pattern of patternProperties.
type pattern struct {
	re    *regexp.Regexp // nil if it matches every key: Go cannot read it, or it exceeds the bounds of patterns
	steps int            // once compiled
}

// maxKeptSteps bounds the steps of the patterns that a schema keeps compiled. Their memory is in proportion to their steps.
const maxKeptSteps = 32 << 10

// pattern returns a compiled pattern. Each compilation is charged for it, whether the schema has kept it or not: all decide alike.
func (l *look) pattern(source string) pattern {
	if p, known := l.all.patterns[source]; known {
		return p
	}
	p := l.schema.pattern(source)
	l.charge((len(source) + p.steps) / stepsPerVisit)
	if l.all.patterns == nil {
		l.all.patterns = map[string]pattern{}
	}
	l.all.patterns[source] = p
	return p
}

// pattern compiles a pattern, and keeps it if there is room.
func (s *Schema) pattern(source string) pattern {
	if known, ok := s.patterns.Load(source); ok {
		p, _ := known.(pattern)
		return p
	}
	var p pattern
	p.re, p.steps, _ = model.CompilePattern(source)
	if steps := int64(p.steps + 1); s.kept.Add(steps) <= maxKeptSteps {
		s.patterns.Store(source, p)
	} else {
		s.kept.Add(-steps)
	}
	return p
}

// matches reports whether a key matches a pattern of patternProperties. It reports open if the budget does not allow
// that.
func (l *look) matches(source, key string) (matches, open bool) {
	p := l.pattern(source)
	if p.re == nil {
		return true, false
	}
	if !l.charge(p.steps / stepsPerVisit * (1 + len(key)/8)) {
		return false, true
	}
	return p.re.MatchString(key), false
}

// arrayIndex returns the array index that a segment of a path stands for: ASCII digits.
func arrayIndex(segment string) (index int, ok bool) {
	if segment == "" || strings.Trim(segment, "0123456789") != "" {
		return 0, false
	}
	index, err := strconv.Atoi(segment)
	return index, err == nil
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
