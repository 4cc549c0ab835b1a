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
	o := &owner{manifest: b.manifest, what: "tool " + t.name, file: t.at.file}
	if t.inferInput && t.fault == nil {
		if !b.tells(o, t, "input", told.Input) {
			s.fault = o.fault
		} else if compiled, err := model.CompileSchema(t.name, told.Input); err != nil {
			s.fault = b.unusable(o, t, "input", err)
		} else {
			s.input = compiled
		}
	}
	if t.inferOutput && t.fault == nil {
		if !b.tells(o, t, "output", told.Output) {
			s.fault = o.fault
		} else if compiled, err := model.CompileValue(t.name, told.Output); err != nil {
			s.fault = b.unusable(o, t, "output", err)
		} else {
			s.output = compiled
		}
	}
	if s.input != nil {
		s.inputSchema = s.input.JSONSchema()
	}
	if s.output != nil {
		s.outputSchema = s.output.JSONSchema()
	}
	return s
}

// tells refuses a tool whose code tells nothing. Code that could not be looked at may tell it later.
func (b *binder) tells(o *owner, t *toolEntry, key string, schema json.RawMessage) bool {
	if schema != nil {
		return true
	}
	what := "its " + string(t.kind) + " code tells nothing of it"
	if t.kind != KindGo && t.kind != KindPython {
		what = "nothing tells it before the tool is called"
	}
	o.refusef(t.at, "bad_schema", "write the JSON Schema, or remove "+key, "%s: inferred, but %s", key, what)
	return false
}

func (b *binder) unusable(o *owner, t *toolEntry, key string, err error) *fault {
	o.refusef(t.at, "bad_schema", "write the JSON Schema, or remove "+key, "%s: inferred, but what its code tells cannot be used: %v", key, err)
	return o.fault
}
