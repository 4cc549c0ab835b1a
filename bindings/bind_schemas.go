package bindings

import (
	"encoding/json"

	"github.com/oneturn/oneturn/bindings/model"
)

// learned is what the code of a tool tells of it, and what its manifest says of that.
type learned struct {
	params []Param
	known  bool // params are

	input                     *model.Model
	output                    *model.Value
	inputSchema, outputSchema json.RawMessage
	fault                     *fault
}

// learn puts together what checks and describes arguments and result of a tool.
func (b *binder) learn(t *toolEntry, params []Param, known bool) learned {
	s := learned{params: params, known: known, input: t.input, output: t.output}
	told := t.tells
	switch t.kind {
	case KindPython:
		fn := b.files[t.path].Functions[t.function]
		told = Registered{fn.Input, fn.Output}
	case KindGo:
		if r, ok := b.registry[t.name]; ok && told.Input == nil {
			told.Input = r.Input
		}
		if r, ok := b.registry[t.name]; ok && told.Output == nil {
			told.Output = r.Output
		}
	case KindNATS, KindMCP, KindHTTP, KindAgent:
	}
	s.inputSchema, s.outputSchema = told.Input, told.Output
	if t.fault == nil && (t.inferInput || t.inferOutput) && !b.elsewhere(t) {
		s.fault = b.infer(t, told, &s)
	}
	if s.input != nil {
		s.inputSchema = s.input.JSONSchema()
	}
	if s.output != nil {
		s.outputSchema = s.output.JSONSchema()
	}
	return s
}

// elsewhere reports whether the code of a tool is part of a program that is not this one.
func (b *binder) elsewhere(t *toolEntry) bool {
	if t.kind != KindGo || b.registry != nil {
		return false
	}
	b.infof(t.at, "schema_unknown", "", "tool %s takes schemas from its Go code, which only the worker's program knows", t.name)
	return true
}

// infer makes the checks of what the code of a tool tells.
func (b *binder) infer(t *toolEntry, told Registered, s *learned) *fault {
	o := &owner{manifest: b.manifest, what: "tool " + t.name, file: t.at.file}
	silent := "its " + string(t.kind) + " code tells nothing of it"
	if t.target != nil {
		silent = "nothing tells it before the tool is called"
	}
	refuse := func(key, why string) {
		o.refusef(t.at, "bad_schema", "write the JSON Schema, or remove "+key, "%s: inferred, but %s", key, why)
	}
	var err error
	switch {
	case !t.inferInput:
	case told.Input == nil:
		refuse("input", silent)
	default:
		if s.input, err = model.CompileSchema(t.name, told.Input); err != nil {
			refuse("input", "what its code tells cannot be used: "+err.Error())
		}
	}
	switch {
	case !t.inferOutput:
	case told.Output == nil:
		refuse("output", silent)
	default:
		if s.output, err = model.CompileValue(t.name, told.Output); err != nil {
			refuse("output", "what its code tells cannot be used: "+err.Error())
		}
	}
	return o.fault
}
