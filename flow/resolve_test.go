package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

func decoded(tb testing.TB, text string) any {
	tb.Helper()
	v, err := events.Decode([]byte(text))
	require.NoError(tb, err)
	return v
}

// resolved compiles a program, stores it, reads it again and resolves its last call.
func resolved(t *testing.T, program *flow.Program, tools flow.Tools, outputs map[string]string) (string, error) {
	t.Helper()
	data, err := json.Marshal(program)
	require.NoError(t, err)
	stored, err := flow.DecodeProgram(data)
	require.NoError(t, err)
	calls := stored.Calls()
	arguments, err := stored.Resolve(calls[len(calls)-1], tools, func(call string) (any, bool) {
		output, ok := outputs[call]
		if !ok {
			return nil, false
		}
		return decoded(t, output), true
	})
	if err != nil {
		return "", err
	}
	return string(events.JSONOf(arguments)), nil
}

func openTool(tb testing.TB, name string) flow.Tool {
	tb.Helper()
	output, err := flow.NewSchema(json.RawMessage(`{"additionalProperties":true,"items":true}`))
	require.NoError(tb, err)
	return flow.Tool{Name: name, Output: output}
}

func TestReferencesBecomeTheValuesThatTheyLeadTo(t *testing.T) {
	t.Parallel()
	tools := flow.ToolList{openTool(t, "a"), openTool(t, "b")}
	plan := `{"type":"tool_calls","calls":[{"tool_name":"a"},{"tool_name":"b","arguments":{
		"whole":"$0.output","n":"$0.output.n","item":"$0.output.list.1.x","none":"$0.output.gone.deeper","past":"$0.output.list.9",
		"text":"see $0.output.n","escaped":"$$0.output.n","deep":{"in":["$0.output.t"]}}}]}`
	program, err := flow.CompilePlan(decoded(t, plan), flow.Options{Tools: tools})
	require.NoError(t, err)
	got, err := resolved(t, program, tools, map[string]string{"0": `{"n":90071992547409931,"t":"$0.output.n","list":[0,{"x":"y"}]}`})
	require.NoError(t, err)
	require.JSONEq(t, `{"whole":{"n":90071992547409931,"t":"$0.output.n","list":[0,{"x":"y"}]},"n":90071992547409931,"item":"y","none":null,
		"past":null,"text":"see $0.output.n","escaped":"$0.output.n","deep":{"in":["$0.output.n"]}}`, got)
	require.Contains(t, got, `"n":90071992547409931`, "digits are kept")
}

func TestKeysWithDotsAreFoundByTheLongestKey(t *testing.T) {
	t.Parallel()
	tools := flow.ToolList{openTool(t, "a")}
	plan := `{"bindings":{"x":{"y":1}},"steps":[
		{"agent":{"agent_id":"a","result_key":"k"}},{"agent":{"agent_id":"a","result_key":"k.v"}},
		{"agent":{"agent_id":"a","with":{"a":"{{ result.k.v.n }}","b":"{{ k.w }}","c":"{{ x.y }}","d":"{{ bindings.x }}-{{ k.v.n }}"}}}]}`
	object, ok := decoded(t, plan).(map[string]any)
	require.True(t, ok)
	program, err := flow.CompileOrchestration(object, flow.Request{}, flow.Options{Tools: tools})
	require.NoError(t, err)
	got, err := resolved(t, program, tools, map[string]string{"step_1": `{"w":"from k","v":{"n":0}}`, "step_2": `{"n":2}`})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":2,"b":"from k","c":1,"d":"{\"y\":1}-2"}`, got)
	require.Equal(t, []string{"step_1", "step_2"}, program.Steps[2].Calls[0].Needs)
}

func TestTextWithoutAValueIsRefused(t *testing.T) {
	t.Parallel()
	tools := flow.ToolList{openTool(t, "a")}
	object, ok := decoded(t, `{"steps":[{"agent":{"agent_id":"a","result_key":"k"}},{"agent":{"agent_id":"a","prompt":"n={{ k.n }}"}}]}`).(map[string]any)
	require.True(t, ok)
	program, err := flow.CompileOrchestration(object, flow.Request{}, flow.Options{Tools: tools})
	require.NoError(t, err)
	_, err = resolved(t, program, tools, map[string]string{"step_1": `{}`})
	require.ErrorIs(t, err, events.ErrBadArgs)
	require.ErrorContains(t, err, "k.n")
	got, err := resolved(t, program, tools, map[string]string{"step_1": `{"n":null}`})
	require.NoError(t, err)
	require.JSONEq(t, `{"prompt":"n=null"}`, got)
}

func TestReferencesInsideANestedProgramAreItsOwn(t *testing.T) {
	t.Parallel()
	tools := flow.ToolList{openTool(t, "a"), {Name: "run_plan", Program: flow.KindPlan}, {Name: "orchestrate", Program: flow.KindOrchestration}}
	inner := `{"type":"tool_calls","calls":[{"tool_name":"a"},{"tool_name":"a","arguments":{"v":"$0.output.x"}}]}`
	program, err := flow.CompilePlan(decoded(t, `{"type":"tool_calls","calls":[{"tool_name":"a"},{"tool_name":"run_plan","arguments":{"plan":`+inner+`}}]}`),
		flow.Options{Tools: tools})
	require.NoError(t, err)
	require.Empty(t, program.Steps[1].Calls[0].Needs)
	got, err := resolved(t, program, tools, map[string]string{"0": `{"x":1}`})
	require.NoError(t, err)
	require.JSONEq(t, `{"plan":`+inner+`}`, got)

	_, err = flow.CompilePlan(decoded(t, `{"type":"tool_calls","calls":[{"tool_name":"a"},{"tool_name":"run_plan","arguments":{"plan":
		{"type":"tool_calls","calls":[{"tool_name":"gone","arguments":{"v":"$3.output.x"}}]}}}]}`), flow.Options{Tools: tools})
	var refused *flow.Refused
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Problems, 2, refused.Feedback())
	require.Equal(t, "/calls/1/arguments/plan/calls/0/arguments/v", refused.Problems[0].Path)
	require.Equal(t, "/calls/1/arguments/plan/calls/0/tool_name", refused.Problems[1].Path)

	program, err = flow.CompilePlan(decoded(t, `{"type":"tool_calls","calls":[{"tool_name":"a"},{"tool_name":"orchestrate",
		"arguments":{"plan":"$0.output.plan","bindings":{"b":"$0.output.b"}}}]}`), flow.Options{Tools: tools})
	require.NoError(t, err)
	got, err = resolved(t, program, tools, map[string]string{"0": `{"plan":{"steps":[]},"b":2}`})
	require.NoError(t, err)
	require.JSONEq(t, `{"plan":{"steps":[]},"bindings":{"b":2}}`, got, "a plan that is a reference comes from the outer program")
}

func TestLimitsBoundWhatAHostilePlanCosts(t *testing.T) {
	t.Parallel()
	tools := flow.ToolList{openTool(t, "a")}
	references := strings.TrimSuffix(strings.Repeat(`"$0.output.x",`, 3000), ",")
	_, err := flow.CompilePlan(decoded(t, `{"type":"tool_calls","calls":[{"tool_name":"a"},{"tool_name":"a","arguments":{"l":[`+references+`]}}]}`),
		flow.Options{Tools: tools})
	var refused *flow.Refused
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Problems, 1)
	require.Equal(t, "too_complex", refused.Problems[0].Rule)

	wrong := strings.TrimSuffix(strings.Repeat(`"$9.output.x",`, 1500), ",")
	_, err = flow.CompilePlan(decoded(t, `{"type":"tool_calls","calls":[{"tool_name":"a","arguments":{"l":[`+wrong+`]}}]}`), flow.Options{Tools: tools})
	require.ErrorAs(t, err, &refused)
	require.Len(t, refused.Problems, flow.MaxProblems)
	require.Less(t, len(refused.Feedback()), 64<<10)

	_, err = flow.CompilePlan(decoded(t, `{"type":"tool_calls","calls":[{"tool_name":"`+strings.Repeat("é", 5000)+`"}]}`), flow.Options{Tools: tools})
	require.ErrorAs(t, err, &refused)
	require.Less(t, len(refused.Feedback()), 2000)
}

// BenchmarkCompile compiles a plan of 50 calls with references into nested schemas.
func BenchmarkCompile(b *testing.B) {
	schema := json.RawMessage(`{"type":"object","properties":{"order":{"$ref":"#/$defs/order"},"id":{"type":"string"}},"$defs":{
		"order":{"allOf":[{"properties":{"lines":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/line"},{"type":"null"}]}}}},{"properties":{"note":{"type":"string"}}}]},
		"line":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}}}}}`)
	input := json.RawMessage(`{"type":"object","properties":{"sku":{"type":["string","null"]},"lines":{"type":"array"},"note":{"type":"string"},"n":{"type":"integer"}},"required":["n"]}`)
	output, err := flow.NewSchema(schema)
	require.NoError(b, err)
	arguments, err := flow.NewSchema(input)
	require.NoError(b, err)
	checked, err := model.CompileSchema("t", input)
	require.NoError(b, err)
	tools := flow.ToolList{{Name: "t", Input: checked, Arguments: arguments, Output: output}}
	var calls strings.Builder
	for i := range 50 {
		if i > 0 {
			calls.WriteString(",")
		}
		from := max(0, i-1)
		if i == 0 {
			calls.WriteString(`{"tool_name":"t","arguments":{"n":1}}`)
			continue
		}
		fmt.Fprintf(&calls, `{"tool_name":"t","arguments":{"n":%d,"sku":"$%d.output.order.lines.0.sku","lines":"$%d.output.order.lines","note":"$%d.output.order.note"}}`, i, from, from, from)
	}
	plan := decoded(b, `{"type":"tool_calls","calls":[`+calls.String()+`]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := flow.CompilePlan(plan, flow.Options{Tools: tools}); err != nil {
			b.Fatal(err)
		}
	}
}
