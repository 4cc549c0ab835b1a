package model

import (
	"maps"
	"slices"
	"strings"
)

// A field's type is a text ("str", "List[int]", the name of a model) or a mapping. Texts are parsed into nodes;
// spellings that MozaiksAI does not know are accepted with a warning if their meaning is clear.

// spec compiles the mapping of one field, item or variant; nil if it is invalid.
func (b *builder) spec(at place, spec map[string]any, depth int) *node {
	if depth > maxTypeDepth {
		b.fail(at, "the type is nested too deeply", "make the inner parts separate models")
		return nil
	}
	var n *node
	switch t := spec["type"].(type) {
	case string:
		n = b.typed(at, t, spec, depth)
	case []any:
		n = b.union(at, t, spec, depth)
	case nil:
		n = b.untyped(at, spec, depth)
	default:
		b.fail(at, "`type` is neither a text nor a list", "write the name of a type, for example `type: str`")
	}
	if n == nil {
		return nil
	}
	n = b.constrain(at, n, spec)
	if nullable, _ := spec["nullable"].(bool); nullable {
		n = orNull(n)
	}
	return n
}

// untyped guesses the type of a mapping that does not name it, as far as there is no doubt.
func (b *builder) untyped(at place, spec map[string]any, depth int) *node {
	switch {
	case spec["fields"] != nil:
		return b.inline(at, spec, depth)
	case spec["variants"] != nil:
		return b.typed(at, "union", spec, depth)
	case spec["values"] != nil, spec["enum"] != nil, spec["allowed_values"] != nil:
		return b.typed(at, "literal", spec, depth)
	}
	b.fail(at, "the field has no `type`", "add one, for example `type: str`")
	return nil
}

// typed compiles the type text t. Names that MozaiksAI knows come first, then the models of
// the workflow, then the names that only this language knows: so a manifest that works there
// means the same here.
func (b *builder) typed(at place, t string, spec map[string]any, depth int) *node {
	t = strings.TrimSpace(t)
	b.nodes++
	if len(t) > maxTypeText || depth > maxTypeDepth || b.nodes > maxNodes {
		b.fail(at, "the type is too large or nested too deeply", "make the inner parts separate models")
		return nil
	}
	if n, known := b.builtin(at, t, spec, depth); known {
		return n
	}
	if d := b.models[t]; d != nil {
		at.pending.uses = append(at.pending.uses, use{at.field, t})
		return d.node
	}
	if n, known := b.extension(at, t, spec, depth); known {
		return n
	}
	lower := strings.ToLower(t)
	if n, known := b.builtin(at, lower, spec, depth); known {
		b.warn(at, "the type "+quote(t)+" is read as "+quote(lower)+"; MozaiksAI does not know it", "write "+quote(lower))
		return n
	}
	if n, known := b.extension(at, lower, spec, depth); known {
		b.warn(at, "the type "+quote(t)+" is read as "+quote(lower), "write "+quote(lower))
		return n
	}
	message := "unknown type " + quote(t)
	names := append(slices.Sorted(maps.Keys(b.models)), "str", "int", "float", "bool", "dict", "list", "optional_str",
		"optional_list", "literal", "union", "any", "string", "integer", "number", "boolean", "object", "array")
	if meant := closestName(t, names); meant != "" {
		message += ", did you mean " + quote(meant) + "?"
	}
	b.fail(at, message, "use str, int, float, bool, dict, list, literal, union, any or the name of a model of this workflow")
	return nil
}

// builtin compiles the types that MozaiksAI knows.
func (b *builder) builtin(at place, t string, spec map[string]any, depth int) (n *node, known bool) {
	switch t {
	case "str", "string":
		return leaf(tString), true
	case "int":
		return leaf(tInteger), true
	case "float":
		return leaf(tNumber), true
	case "bool":
		return leaf(tBool), true
	case "optional_str", "Optional[str]":
		return leaf(tString | tNull), true
	case "dict", "Dict":
		return leaf(tObject), true
	case "List":
		return leaf(tArray), true
	case "list":
		return b.list(at, spec["items"], depth), true
	case "optional_list":
		return orNull(b.list(at, spec["items"], depth)), true
	case "literal":
		return b.literal(at, spec), true
	case "union":
		variants, ok := spec["variants"].([]any)
		if !ok {
			b.fail(at, "a union needs `variants`, a list of types", `write for example variants: ["str", "null"]`)
			return nil, true
		}
		return b.union(at, variants, spec, depth), true
	}
	if name, args, ok := generic(t); ok && name == "list" && len(args) == 1 {
		return b.list(at, args[0], depth), true
	}
	return nil, false
}

// extension compiles the types that users expected and MozaiksAI cannot build.
func (b *builder) extension(at place, t string, spec map[string]any, depth int) (n *node, known bool) {
	switch t {
	case "any", "Any":
		return &node{types: tAny, lax: true}, true
	case "integer":
		return leaf(tInteger), true
	case "number":
		return leaf(tNumber), true
	case "boolean":
		return leaf(tBool), true
	case "null", "none", "None":
		return leaf(tNull), true
	case "array":
		return b.list(at, spec["items"], depth), true
	case "enum":
		return b.literal(at, spec), true
	case "model":
		return b.inline(at, spec, depth), true
	case "object":
		if spec["fields"] != nil || spec["properties"] != nil {
			return b.inline(at, spec, depth), true
		}
		return leaf(tObject), true
	}
	if rest, ok := strings.CutPrefix(t, "optional_"); ok && rest != "" {
		return orNull(b.typed(at, rest, spec, depth+1)), true
	}
	if parts := split(t, '|'); len(parts) > 1 {
		return b.union(at, parts, spec, depth), true
	}
	name, args, ok := generic(t)
	if !ok {
		return nil, false
	}
	switch lower := strings.ToLower(name); {
	case lower == "optional" && len(args) == 1:
		inner, _ := args[0].(string)
		return orNull(b.typed(at, inner, spec, depth+1)), true
	case (lower == "list" || lower == "array") && len(args) == 1:
		return b.list(at, args[0], depth), true
	case lower == "dict" && len(args) == 2: //nolint:mnd // key and value
		return b.dict(at, args, depth), true
	case lower == "union":
		return b.union(at, args, spec, depth), true
	}
	return nil, false
}

// list compiles a list; without items it is untyped.
func (b *builder) list(at place, items any, depth int) *node {
	n := leaf(tArray)
	switch items := items.(type) {
	case nil:
	case string:
		n.arr.items = b.typed(at, items, nil, depth+1)
	case map[string]any:
		n.arr.items = b.spec(at, items, depth+1)
	default:
		b.fail(at, "`items` is neither the name of a type nor a mapping", "write for example `items: str`")
	}
	if items != nil && n.arr.items == nil {
		return nil
	}
	return n
}

// dict compiles dict[str, T]. JSON has only string keys.
func (b *builder) dict(at place, args []any, depth int) *node {
	if key, _ := args[0].(string); trimmedLower(key) != "str" && trimmedLower(key) != "string" {
		b.fail(at, "the keys of a dict are texts", "write dict[str, T]")
		return nil
	}
	value, _ := args[1].(string)
	n := leaf(tObject)
	n.obj.extras, n.obj.extra = extrasChecked, b.typed(at, value, nil, depth+1)
	if n.obj.extra == nil {
		return nil
	}
	return n
}

// literal compiles a closed set of scalars.
func (b *builder) literal(at place, spec map[string]any) *node {
	values, ok := allowed(spec)
	if !ok || len(values) == 0 {
		b.fail(at, "a literal needs `values`, a list that is not empty", `write for example values: ["a", "b"]`)
		return nil
	}
	for _, v := range values {
		if t := typeOf(v); t == tArray || t == tObject || t == tNothing {
			b.fail(at, "a literal's values must be texts, numbers, true, false or null", "use a model for objects and lists")
			return nil
		}
	}
	return &node{types: tAny, lax: true, enum: newEnum(values, RuleEnum, true)}
}

// allowed returns the values of a literal or of any field that is limited to some.
func allowed(spec map[string]any) ([]any, bool) {
	for _, key := range []string{"values", "enum", "allowed_values"} {
		if v, given := spec[key]; given {
			values, ok := v.([]any)
			return values, ok
		}
	}
	return nil, false
}

// union compiles alternatives. A variant `literal` takes its values from the union's mapping.
func (b *builder) union(at place, variants []any, spec map[string]any, depth int) *node {
	n := &node{types: tAny, lax: true}
	good := len(variants) > 0
	if !good {
		b.fail(at, "a union has no variants", `write for example variants: ["str", "null"]`)
	}
	for _, variant := range variants {
		var alt *node
		switch variant := variant.(type) {
		case nil:
			alt = leaf(tNull)
		case string:
			alt = b.typed(at, variant, withoutVariants(spec), depth+1)
		case map[string]any:
			alt = b.spec(at, variant, depth+1)
		default:
			b.fail(at, "a variant is neither the name of a type nor a mapping", "write the name of a type")
		}
		if alt == nil {
			good = false
			continue
		}
		n.alts = append(n.alts, alt)
	}
	if !good {
		return nil
	}
	return n
}

// withoutVariants is what a variant that is only a name may use of its union's mapping.
func withoutVariants(spec map[string]any) map[string]any {
	out := make(map[string]any, 2) //nolint:mnd // the two kinds of keys below
	for _, key := range []string{"items", "values", "enum", "allowed_values"} {
		if v, given := spec[key]; given {
			out[key] = v
		}
	}
	return out
}

// inline compiles a model that is written where it is used.
func (b *builder) inline(at place, spec map[string]any, depth int) *node {
	given := spec["fields"]
	if given == nil {
		given = spec["properties"]
	}
	members, ok := given.(map[string]any)
	if !ok && given != nil {
		b.fail(at, "`fields` is not a mapping of names to types", "write fields: {name: {type: str}}")
		return nil
	}
	fields := make([]Field, 0, len(members))
	for _, name := range sortedKeys(members) {
		f := Field{Name: name}
		switch member := members[name].(type) {
		case map[string]any:
			f.Spec = member
		case string:
			f.Spec = map[string]any{"type": member}
		}
		fields = append(fields, f)
	}
	if b.fields += len(fields); b.fields > maxFields {
		b.fail(at, "too many fields", "split the workflow")
		return nil
	}
	n := leaf(tObject)
	if n.obj = b.object(at, fields, depth+1); n.obj == nil {
		return nil
	}
	return n
}

// leaf is a node of one type, perhaps or null.
func leaf(t types) *node {
	n := &node{types: t, lax: true, convert: conversion(t&^tNull, true)}
	switch {
	case t&tArray != 0:
		n.arr = &arrayRules{max: noMax}
	case t&tObject != 0:
		n.obj = &objectRules{max: noMax}
	}
	return n
}

// noMax stands for an absent maximum.
const noMax = -1

// orNull is n or null. Models are shared, so they get a node around them.
func orNull(n *node) *node {
	switch {
	case n == nil:
		return nil
	case n.model != "" || n.enum != nil || len(n.alts) > 0:
		return &node{types: tAny, lax: true, alts: []*node{n, leaf(tNull)}}
	default:
		n.types |= tNull
		return n
	}
}

// generic splits name[a, b].
func generic(t string) (name string, args []any, ok bool) {
	name, rest, ok := strings.Cut(t, "[")
	if !ok || !strings.HasSuffix(rest, "]") {
		return "", nil, false
	}
	return strings.TrimSpace(name), split(strings.TrimSuffix(rest, "]"), ','), true
}

// split cuts t at the separators that are outside of brackets.
func split(t string, separator byte) []any {
	var parts []any
	depth, start := 0, 0
	for i := range len(t) {
		switch t[i] {
		case '[':
			depth++
		case ']':
			depth--
		case separator:
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(t[start:i]))
				start = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(t[start:]))
}

func trimmedLower(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
