package bindings

import (
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/diag"
)

// inferred asks for the schema that the code of the tool declares.
const inferred = "inferred"

// schemas reads the schemas that a tool declares itself.
func (o *entryReader) schemas(n *node, t *toolEntry) {
	if v := n.get("input"); !v.absent() {
		t.input, t.inferInput = nil, false
		if data := o.schema(v, "input", &t.inferInput); data != nil {
			compiled, err := model.CompileSchema(t.name, data)
			o.problems(v, "input", schemaProblems(compiled, err))
			t.input = compiled
		}
	}
	if v := n.get("output"); !v.absent() {
		t.output, t.inferOutput = nil, false
		if data := o.schema(v, "output", &t.inferOutput); data != nil {
			compiled, err := model.CompileValue(t.name, data)
			o.problems(v, "output", schemaProblems(compiled, err))
			t.output = compiled
		}
	}
}

// schema returns the JSON of a schema, nil if there is none to compile.
func (o *entryReader) schema(n *node, key string, infer *bool) []byte {
	switch {
	case n.is(mapNode):
		return n.appendJSON(nil)
	case n.str() == inferred:
		*infer = true
	default:
		o.refusef(n.at(o.file), "bad_schema", "write a JSON Schema, for example "+key+": {type: object}, or "+key+": inferred", "%s is not a schema", key)
	}
	return nil
}

// problems reports each problem of a schema at its line.
func (o *entryReader) problems(n *node, key string, found []model.Problem) {
	for _, p := range found {
		at, message := placeOf(p, n, n.at(o.file))
		if p.Severity == diag.SeverityWarning {
			o.warnf(at, "bad_schema", p.Fix, "%s of %s: %s", key, o.what, message)
			continue
		}
		o.refusef(at, "bad_schema", p.Fix, "%s: %s", key, message)
	}
}

// schemaProblems is what is wrong with a schema, whether or not it compiles.
func schemaProblems(compiled interface{ Problems() []model.Problem }, err error) []model.Problem {
	if invalid := new(model.SchemaError); errors.As(err, &invalid) {
		return invalid.Problems
	}
	if err != nil {
		return []model.Problem{{Finding: diag.Finding{Severity: diag.SeverityError, Message: err.Error(), Fix: "correct the schema"}}}
	}
	return compiled.Problems()
}

// placeOf returns the place of a problem of a schema, by its pointer into the source, and its message.
func placeOf(p model.Problem, source *node, at place) (place, string) {
	if line := source.lineOf(p.Field); line > 0 {
		at.line = line
	}
	if p.Field == "" {
		return at, p.Message
	}
	return at, fmt.Sprintf("%s (%s)", p.Message, quoted(p.Field))
}
