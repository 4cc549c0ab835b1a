package model_test

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/bindings/model"
)

func Example() {
	models, problems := model.CompileMozaiks([]model.Definition{{
		Name: "Plan",
		Fields: []model.Field{
			{Name: "steps", Spec: map[string]any{"type": "int"}},
			{Name: "mode", Spec: map[string]any{"type": "literal", "values": []any{"fast", "safe"}, "default": "safe"}},
		},
	}})
	fmt.Println(len(problems))
	out, _ := models["Plan"].Check(map[string]any{"steps": "3", "noise": true})
	fmt.Println(out)
	_, violations := models["Plan"].Check(map[string]any{"step": json.Number("3")})
	fmt.Println(model.Feedback("Plan", violations))
	// Output:
	// 0
	// map[mode:safe steps:3]
	// Your output does not fit the model "Plan". Correct this error:
	// - /steps: is missing; expected integer, under the key "steps" instead of "step".
	// Send the whole corrected JSON object again, not only the changed parts, and nothing else.
}

func ExampleCompileSchema() {
	m, err := model.CompileSchema("Order", json.RawMessage(`{
		"type": "object",
		"properties": {"count": {"type": "integer", "minimum": 1}},
		"required": ["count"]
	}`))
	fmt.Println(err)
	out, _ := m.Check(map[string]any{"count": "2"})
	fmt.Println(out)
	// Output:
	// <nil>
	// map[count:2]
}
