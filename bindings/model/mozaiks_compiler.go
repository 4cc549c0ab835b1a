package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/oneturn/oneturn/diag"
)

// The models of one workflow are compiled together, since they refer to each other by name. The builder compiles
// each model once, reports what is wrong with the place, and disables models that refer to a broken one. Types are
// in mozaiks_types.go.

// Definition is one named model of a workflow's structured outputs, fields in manifest order.
type Definition struct {
	Name   string
	Fields []Field
	Open   bool // `enum` and `allowed_values` limit nothing, as in MozaiksAI
	// Alias is the mapping of a named literal or union, which fields use like a model; nil for a
	// model. It is not a model itself: the result does not have it.
	Alias map[string]any
}

// Field is one field of a [Definition]. Spec is the field's mapping as a value tree: `type`,
// `items`, `values`, `variants`, `fields`, `default`, `description`, `required`, `nullable`,
// `enum` or `allowed_values`, and bounds.
type Field struct {
	Name string
	Spec map[string]any
}

// Problem is something wrong with a definition or schema. With [diag.SeverityError] the model is
// unusable, with [diag.SeverityWarning] it works, but perhaps not as meant. Field is the path inside
// the model, "" for the model itself.
type Problem struct {
	Model string
	diag.Finding
}

func problem(model, field string, severity diag.Severity, message, fix string) Problem {
	return Problem{model, diag.Finding{Severity: severity, Field: field, Message: message, Fix: fix}}
}

// Bounds of a set of definitions.
const (
	maxModels    = 2_000
	maxFields    = 10_000 // of all models together
	maxTypeDepth = 32     // nesting of a field's type
	maxTypeText  = 1_000  // characters of a type
	maxNodes     = 10_000 // types inside one model
	maxProblems  = 1_000  // reported for a set
)

// CompileMozaiks compiles the models of one workflow. Models may refer to each other in any
// order and may be recursive. An invalid field makes only its model, and the models that
// need it, unusable: those are missing from the result. Every error and oddity is a [Problem], in the
// order of the definitions.
func CompileMozaiks(defs []Definition) (map[string]*Model, []Problem) {
	b := &builder{models: map[string]*pendingModel{}}
	for _, def := range defs {
		b.declare(def)
	}
	for _, d := range b.order {
		b.alias(d)
	}
	for _, d := range b.order {
		b.compile(d)
	}
	b.spread()
	b.checkDefaults()
	models := make(map[string]*Model, len(b.order))
	for _, d := range b.order {
		if d.bad || d.def.Alias != nil {
			continue
		}
		models[d.def.Name] = &Model{
			Name:   d.def.Name,
			root:   d.node,
			fields: d.names(),
			schema: render(d.node),
		}
	}
	return models, b.problems
}

// pendingModel is a model while it is compiled. Its node exists from the start, so that other models
// and it itself can point to it.
type pendingModel struct {
	def  Definition
	node *node
	bad  bool
	uses []use
}

// use is the need of a field for a model.
type use struct{ field, model string }

func (d *pendingModel) names() []string {
	names := make([]string, len(d.def.Fields))
	for i, f := range d.def.Fields {
		names[i] = f.Name
	}
	return names
}

// builder compiles a set of definitions.
type builder struct {
	models   map[string]*pendingModel
	order    []*pendingModel
	fields   int
	nodes    int // of the model at hand
	problems []Problem
}

func (b *builder) declare(def Definition) {
	at := place{model: def.Name}
	b.fields += len(def.Fields)
	switch {
	case def.Name == "":
		b.fail(at, "a model has no name", "give it one")
		return
	case b.models[def.Name] != nil:
		b.fail(at, "the model is defined twice; the first definition counts", "remove or rename one of them")
		return
	case len(b.order) >= maxModels || b.fields > maxFields:
		b.fail(at, "too many models: at most "+strconv.Itoa(maxModels)+" with "+strconv.Itoa(maxFields)+
			" fields together", "split the workflow")
		return
	}
	d := &pendingModel{def: def, node: &node{types: tObject, lax: true, model: def.Name}}
	b.models[def.Name] = d
	b.order = append(b.order, d)
}

// alias compiles a named literal or union. The models that use it already point to its node.
func (b *builder) alias(d *pendingModel) {
	if d.def.Alias == nil {
		return
	}
	n := b.spec(place{model: d.def.Name, pending: d}, d.def.Alias, 0)
	if d.bad = n == nil; !d.bad {
		*d.node = *n
	}
}

func (b *builder) compile(d *pendingModel) {
	if d.def.Alias != nil {
		return
	}
	b.nodes = 0
	at := place{model: d.def.Name, pending: d}
	d.node.obj = b.object(at, d.def.Fields, 0)
	d.bad = d.node.obj == nil
}

// object compiles fields; nil if one of them is invalid. All of them are checked, so that every problem
// is reported together.
func (b *builder) object(at place, fields []Field, depth int) *objectRules {
	r := &objectRules{extras: extrasDropped, max: noMax, index: make(map[string]struct{}, len(fields))}
	good := true
	for _, f := range fields {
		inside := at.below(f.Name)
		if _, twice := r.index[f.Name]; twice {
			b.fail(inside, "the field is defined twice", "remove or rename one of them")
			good = false
			continue
		}
		r.index[f.Name] = struct{}{}
		compiled, ok := b.field(inside, f, depth)
		if !ok {
			good = false
			continue
		}
		r.fields = append(r.fields, compiled)
	}
	if !good {
		return nil
	}
	r.names = newNames(slices.Collect(maps.Keys(r.index)), false)
	return r
}

// field compiles one field. It is required unless it has a default or `required: false`; a
// default is used as it is, neither coerced nor checked.
func (b *builder) field(at place, f Field, depth int) (field, bool) {
	n := b.spec(at, f.Spec, depth)
	if n == nil {
		return field{}, false
	}
	out := field{name: f.Name, node: n, required: true}
	out.value, out.hasDefault = f.Spec["default"]
	if !out.hasDefault && isOptionalList(f.Spec) {
		out.hasDefault = true // null
	}
	out.description, _ = f.Spec["description"].(string)
	required, given := f.Spec["required"]
	switch want, isBool := required.(bool); {
	case given && !isBool:
		b.warn(at, "`required` is not true or false and is ignored", "write `required: false`, or remove it")
	case given && want && out.hasDefault:
		b.warn(at, "`required: true` with a default: the default makes the field optional", "remove one of the two")
	case given && !want:
		out.required = false
	}
	if _, given := f.Spec["optional"]; given && out.required && !out.hasDefault {
		b.warn(at, "`optional` is ignored and the field stays required, as in MozaiksAI",
			"write `required: false` or give a `default`")
	}
	if out.hasDefault {
		out.required = false
	}
	return out, true
}

func isOptionalList(spec map[string]any) bool {
	t, _ := spec["type"].(string)
	return trimmedLower(t) == "optional_list"
}

// spread makes the models unusable that need an unusable one.
func (b *builder) spread() {
	for again := true; again; {
		again = false
		for _, d := range b.order {
			if d.bad {
				continue
			}
			i := slices.IndexFunc(d.uses, func(u use) bool { return b.models[u.model].bad })
			if i < 0 {
				continue
			}
			d.bad, again = true, true
			u := d.uses[i]
			b.fail(place{model: d.def.Name, field: u.field},
				"needs the model "+quote(u.model)+", which is unusable", "fix "+quote(u.model))
		}
	}
}

// checkDefaults reports defaults that do not fit. MozaiksAI passes them to the tool as they are, and
// so does [Model.Check]; null stands for "nothing given".
func (b *builder) checkDefaults() {
	for _, d := range b.order {
		if d.bad || d.def.Alias != nil {
			continue
		}
		for _, f := range d.node.obj.fields {
			if f.value == nil {
				continue
			}
			if _, violations := checkValue(f.node, f.value, false); len(violations) > 0 {
				b.warn(place{model: d.def.Name, field: f.name},
					"the default "+literal(f.value)+" does not fit and reaches the tool as it is: "+reasonOf(violations), f.node.fixDefault(f.value))
			}
		}
	}
}

// place is where a problem is.
type place struct {
	model, field string
	pending      *pendingModel
}

func (p place) below(field string) place {
	if p.field != "" {
		field = p.field + "." + field
	}
	p.field = field
	return p
}

func (b *builder) fail(at place, message, fix string) {
	b.report(problem(at.model, at.field, diag.SeverityError, message, fix))
}

func (b *builder) warn(at place, message, fix string) {
	b.report(problem(at.model, at.field, diag.SeverityWarning, message, fix))
}

func (b *builder) report(p Problem) {
	if len(b.problems) < maxProblems {
		b.problems = append(b.problems, p)
	}
}

// quote shows a name of the manifest, shortened.
func quote(s string) string {
	const long = 80 // bytes
	if len(s) > long {
		s = s[:long] + "…"
	}
	return strconv.Quote(s)
}

// intOf reads a count from a manifest.
func intOf(v any) (int, bool) {
	lit, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	d, ok := parseDecimal(string(lit))
	if !ok || !d.isInteger() || d.negative || d.exp > 9 {
		return 0, false
	}
	n, err := strconv.Atoi(d.integer())
	return n, err == nil
}
