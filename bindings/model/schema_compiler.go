package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/oneturn/oneturn/events"
)

// The compiler of JSON Schemas: schema_graph.go finds the sub-schemas and their references, here each becomes a
// node, keyword by keyword. What the tree cannot express is left to jsonschema_check.go.

// maxSchema is the largest JSON Schema that is read, in bytes.
const maxSchema = 256 << 10

// CompileSchema compiles one JSON Schema (draft 2020-12) for an object. References lead only to
// places inside the schema; nothing is ever loaded. The schema's cost is bounded: a schema that
// would make checks slow is refused. The error is a *[SchemaError] with all that is wrong, and an
// *[events.Error] with code bad_args or too_large.
//
// The check coerces where the schema leaves no doubt (see conversion in coerce.go), fills
// `default` (completed and coerced like what it stands for), and drops unknown keys where `additionalProperties` is false. `format` is ignored.
func CompileSchema(name string, schema json.RawMessage) (*Model, error) {
	return compileSchema(name, schema, true)
}

// compileSchema compiles a schema, of an object or of any value.
func compileSchema(name string, schema json.RawMessage, object bool) (*Model, error) {
	if len(schema) > maxSchema {
		return nil, refuse(name, events.CodeTooLarge, "",
			fmt.Sprintf("the schema has %d bytes, at most %d are read", len(schema), maxSchema), "split it")
	}
	tree, err := events.Decode(schema)
	if err != nil {
		return nil, refuse(name, events.CodeBadArgs, "", "invalid JSON schema: "+err.Error(), "fix its syntax")
	}
	if _, ok := tree.(map[string]any); !ok {
		return nil, refuse(name, events.CodeBadArgs, "", "the schema is not an object", "write for example {type: object}")
	}
	g, root := newGraph(name, tree)
	if g.stopped {
		return nil, g.err()
	}
	s := &schemaCompiler{graph: g, nodes: map[*sub]*node{}}
	n := s.node(root)
	if err := g.err(); err != nil {
		return nil, err
	}
	switch {
	case object && n.types&tObject == 0:
		return nil, refuse(name, events.CodeBadArgs, "", "the schema admits no object", "write type: object at its top")
	case n.types == tNothing:
		return nil, refuse(name, events.CodeBadArgs, "", "the schema admits no value", "name a type at its top")
	}
	problems := s.contradictions(name)
	m := &Model{Name: name, root: n, problems: problems, fields: s.fieldNames(schema, root), schema: compact(schema)}
	if s.needsSchema {
		if m.rest, err = newExternal(name, tree, root); err != nil {
			return nil, err
		}
	}
	if err := m.probe(root); err != nil {
		return nil, err
	}
	return m, nil
}

func compact(schema json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, schema); err != nil {
		return slices.Clone(schema)
	}
	return b.Bytes()
}

// schemaCompiler turns the sub-schemas of a graph into nodes.
type schemaCompiler struct {
	graph       *graph
	nodes       map[*sub]*node
	needsSchema bool // something is not covered by the nodes
}

// node compiles a sub-schema once; cycles meet the node that is being built.
func (s *schemaCompiler) node(at *sub) *node {
	for at.onlyRef() {
		at = at.ref
	}
	if n := s.nodes[at]; n != nil {
		return n
	}
	n := &node{types: tAny}
	s.nodes[at] = n
	if at.boolSchema != nil {
		if !*at.boolSchema {
			n.types = tNothing
		}
		return n
	}
	for _, step := range []func(*node, *sub){s.types, s.values, s.scalars, s.array, s.object, s.combined} {
		step(n, at)
	}
	if at.uncovered {
		s.needsSchema = true
	}
	return n
}

// types reads `type` and decides the coercion: only into the one type besides null.
func (s *schemaCompiler) types(n *node, at *sub) {
	given, ok := at.raw["type"]
	if !ok {
		return
	}
	names, isList := given.([]any)
	if !isList {
		names = []any{given}
	}
	n.types = tNothing
	for _, name := range names {
		t, ok := map[any]types{
			"null": tNull, "boolean": tBool, "integer": tInteger, "number": tInteger | tNumber,
			"string": tString, "array": tArray, "object": tObject,
		}[asText(name)]
		if !ok {
			message := "`type` is not a text"
			if word := asText(name); word != "" {
				message = "`type` is " + quote(word) + ", which is not a type of JSON Schema"
			}
			s.graph.refuse(at.pointer+"/type", message, typeFix(asText(name)))
			n.types = tAny
			return
		}
		n.types |= t
	}
	wanted := n.types &^ tNull
	if wanted&tNumber != 0 {
		wanted &^= tInteger
	}
	n.convert = conversion(wanted, false)
}

func asText(v any) string {
	text, _ := v.(string)
	return text
}

// values reads `enum` and `const`.
func (s *schemaCompiler) values(n *node, at *sub) {
	if given, ok := at.raw["enum"]; ok {
		values, isList := given.([]any)
		if !isList || len(values) == 0 {
			s.wrong(at, "enum", "write a list of values that is not empty")
			return
		}
		n.enum = newEnum(values, RuleEnum, false)
	}
	if given, ok := at.raw["const"]; ok {
		only := newEnum([]any{given}, RuleConst, false)
		if n.enum == nil {
			n.enum = only
		} else {
			n.all = append(n.all, &node{types: tAny, enum: only})
		}
	}
}

// scalars reads the rules for strings and numbers.
func (s *schemaCompiler) scalars(n *node, at *sub) {
	text := &stringRules{max: noMax, pattern: at.pattern}
	number := &numberRules{}
	s.counts(at, "minLength", &text.min, "maxLength", &text.max)
	for _, bound := range []struct {
		key string
		to  **decimal
	}{
		{"minimum", &number.min},
		{"maximum", &number.max},
		{"exclusiveMinimum", &number.above},
		{"exclusiveMaximum", &number.below},
		{"multipleOf", &number.multiple},
	} {
		given, ok := at.raw[bound.key]
		if !ok {
			continue
		}
		lit, _ := given.(json.Number)
		d, ok := parseDecimal(string(lit))
		if !ok || bound.key == "multipleOf" && d.sign() <= 0 {
			s.wrong(at, bound.key, "write a number (of multipleOf: more than 0)")
			continue
		}
		*bound.to = &d
	}
	if text.min > 0 || text.max >= 0 || text.pattern != nil {
		n.str = text
	}
	if *number != (numberRules{}) {
		n.num = number
	}
}

// counts reads a pair of size bounds.
func (s *schemaCompiler) counts(at *sub, low string, least *int, high string, most *int) {
	for _, bound := range []struct {
		key string
		to  *int
	}{{low, least}, {high, most}} {
		given, ok := at.raw[bound.key]
		if !ok {
			continue
		}
		n, ok := intOf(given)
		if !ok {
			s.wrong(at, bound.key, "write a count from 0 to 999999999")
			continue
		}
		*bound.to = n
	}
}

func (s *schemaCompiler) array(n *node, at *sub) {
	r := &arrayRules{max: noMax}
	s.counts(at, "minItems", &r.min, "maxItems", &r.max)
	r.unique, _ = at.raw["uniqueItems"].(bool)
	if items := at.child("items"); items != nil && len(at.prefix) == 0 {
		r.items = s.node(items)
	}
	n.arr = r
}

// object reads the rules for objects. Keys that a pattern might name are left to the schema.
func (s *schemaCompiler) object(n *node, at *sub) {
	r := &objectRules{max: noMax, index: map[string]struct{}{}}
	s.counts(at, "minProperties", &r.min, "maxProperties", &r.max)
	required := s.required(at)
	closed := at.child("additionalProperties").never() && at.raw["patternProperties"] == nil
	names := s.graph.names(at)
	for name := range required {
		if at.props[name] != nil {
			continue
		}
		if closed {
			s.graph.refuse(at.pointer+"/required",
				"it requires "+quote(name)+", which `additionalProperties: false` forbids", "add it to `properties`")
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names[len(at.props):])
	for _, name := range names {
		f := field{name: name, node: &node{types: tAny}, required: required[name]}
		if property := at.props[name]; property != nil {
			f.node = s.node(property)
			f.value, f.hasDefault = property.raw["default"]
		}
		r.index[name] = struct{}{}
		r.fields = append(r.fields, f)
	}
	switch extra := at.child("additionalProperties"); {
	case closed:
		r.extras = extrasDropped
	case extra == nil || at.raw["patternProperties"] != nil:
	case extra.boolSchema == nil:
		r.extras = extrasChecked
		r.extra = s.node(extra)
	}
	r.names = newNames(names, r.extras != extrasDropped)
	n.obj = r
}

func (s *schemaCompiler) required(at *sub) map[string]bool {
	required := map[string]bool{}
	given, ok := at.raw["required"]
	if !ok {
		return required
	}
	names, isList := given.([]any)
	for _, name := range names {
		text, isText := name.(string)
		isList = isList && isText
		required[text] = isText
	}
	if !isList {
		s.wrong(at, "required", "write a list of property names, for example required: [title]")
		return map[string]bool{}
	}
	return required
}

// combined reads `$ref`, `allOf`, `anyOf` and `oneOf`. Where parts act on one value together,
// a later part may change what an earlier one has checked, so the schema has the last word.
func (s *schemaCompiler) combined(n *node, at *sub) {
	parts := slices.Clone(at.lists["allOf"])
	if at.ref != nil {
		parts = append(parts, at.ref)
	}
	for _, part := range parts {
		n.all = append(n.all, s.node(part))
		s.needsSchema = true
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		alts := at.lists[key]
		if len(alts) == 0 {
			continue
		}
		u := &node{types: tAny}
		for _, alt := range alts {
			compiled := s.node(alt)
			u.alts = append(u.alts, compiled)
			u.fixed = u.fixed || compiled.types&tString != 0 && (compiled.enum == nil || len(compiled.enum.strings) > 0)
		}
		if key == "oneOf" && !disjoint(u.alts) || at.moreThan(key) {
			s.needsSchema = true
		}
		if at.moreThan(key) {
			n.all = append(n.all, u)
		} else {
			n.alts, n.fixed = u.alts, u.fixed
		}
	}
}

// disjoint reports whether no value belongs to two alternatives by its type already.
func disjoint(alts []*node) bool {
	seen := tNothing
	for _, alt := range alts {
		t := alt.types
		if t&(tInteger|tNumber) != 0 {
			t |= tInteger | tNumber
		}
		if seen&t != 0 || len(alt.alts) > 0 || len(alt.all) > 0 {
			return false
		}
		seen |= t
	}
	return true
}

// wrong notes a rule whose value makes no sense.
func (s *schemaCompiler) wrong(at *sub, key, fix string) {
	s.graph.refuse(at.pointer+"/"+key, "`"+key+"` has a value that it cannot have", fix)
}
