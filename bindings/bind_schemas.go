package bindings

import (
	"encoding/json"

	"github.com/oneturn/oneturn/bindings/model"
)

// toolSchemas are the schemas of a tool: what its code declares, and what its manifest does with that.
type toolSchemas struct {
	params []Param
	known  bool // params are

	input                     *model.Model
	output                    *model.Value
	inputSchema, outputSchema json.RawMessage
	problem                   *bindProblem
}

// schemasOf puts together what checks and describes arguments and result of a tool.
func (b *binder) schemasOf(t *toolEntry, params []Param, known bool) toolSchemas {
	s := toolSchemas{params: params, known: known, input: t.input, output: t.output}
	declared := t.registered
	switch t.kind {
	case KindPython:
		fn := b.files[t.path].Functions[t.function]
		declared = Registered{fn.Input, fn.Output}
	case KindGo:
		if r, ok := b.registry[t.name]; ok && declared.Input == nil {
			declared.Input = r.Input
		}
		if r, ok := b.registry[t.name]; ok && declared.Output == nil {
			declared.Output = r.Output
		}
	case KindNATS, KindMCP, KindHTTP, KindAgent, KindPlan, KindOrchestrate:
	}
	s.inputSchema, s.outputSchema = declared.Input, declared.Output
	if t.problem == nil && (t.inferInput || t.inferOutput) && !b.inOtherProgram(t) {
		s.problem = b.infer(t, declared, &s)
	}
	if s.input != nil {
		s.inputSchema = s.input.JSONSchema()
	}
	if s.output != nil {
		s.outputSchema = s.output.JSONSchema()
	}
	return s
}

// inOtherProgram reports whether the code of a tool is part of a program that is not this one.
func (b *binder) inOtherProgram(t *toolEntry) bool {
	if t.kind != KindGo || b.registry != nil {
		return false
	}
	b.infof(t.at, "schema_unknown", "", "tool %s takes schemas from its Go code, which only the worker's program knows", t.name)
	return true
}

// infer makes the checks from what the code of a tool declares.
func (b *binder) infer(t *toolEntry, declared Registered, s *toolSchemas) *bindProblem {
	o := &entryReader{manifest: b.manifest, what: "tool " + t.name, file: t.at.file}
	missing := "its " + string(t.kind) + " code declares none"
	if t.target != nil {
		missing = "it is not known before the tool is called"
	}
	refuse := func(key, why string) {
		o.refusef(t.at, "bad_schema", "write the JSON Schema, or remove "+key, "%s: inferred, but %s", key, why)
	}
	var err error
	switch {
	case !t.inferInput:
	case declared.Input == nil:
		refuse("input", missing)
	default:
		if s.input, err = model.CompileSchema(t.name, declared.Input); err != nil {
			refuse("input", "the schema in its code is invalid: "+err.Error())
		}
	}
	switch {
	case !t.inferOutput:
	case declared.Output == nil:
		refuse("output", missing)
	default:
		if s.output, err = model.CompileValue(t.name, declared.Output); err != nil {
			refuse("output", "the schema in its code is invalid: "+err.Error())
		}
	}
	return o.problem
}
