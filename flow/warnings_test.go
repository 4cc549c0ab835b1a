package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/flow"
)

// warned are the places of the warnings about data.
func warned(t *testing.T, kind flow.Kind, data string) []string {
	t.Helper()
	object, ok := decoded(t, data).(map[string]any)
	require.True(t, ok)
	paths := []string{}
	for _, w := range flow.Warnings(kind, object) {
		paths = append(paths, w.Path)
	}
	return paths
}

func TestTextsThatLookLikeReferencesAreWarnedOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"$0.missing": true, "$0.outputs.x": true, "${0.output}": true, "$0": true, "{{ result.x }}": true, "order $0.output.id": true,
		"$0.output.id": false, "$0.output": false, "$$0.output.id": false, "$5.00": false, "costs $5": false, "$HOME": false, "{": false, "": false,
	} {
		paths := warned(t, flow.KindPlan, `{"calls":[{"tool_name":"a"},{"tool_name":"b","arguments":{"list":["x","`+text+`"]}}]}`)
		if want {
			require.Equal(t, []string{"/calls/1/arguments/list/1"}, paths, text)
		} else {
			require.Empty(t, paths, text)
		}
	}
	require.Equal(t, []string{"/steps/0/agent/prompt", "/steps/1/parallel/steps/0/with/v"}, warned(t, flow.KindOrchestration, `{"steps":[
		{"agent":{"agent_id":"a","prompt":"use $0.output.x"}}, {"parallel":{"steps":[{"agent_id":"a","with":{"v":"${result.x}","w":"{{ result.x }}","plan":{"x":"$0"}}}]}}]}`))
	require.Equal(t, []string{"/calls/0/args", "/calls/1/args", "/calls/2/note"}, warned(t, flow.KindPlan, `{"calls":[{"tool_name":"a","args":{}},{"tool_name":"a","args":{},"arguments":{}},{"tool_name":"a","note":1}]}`))
	for text, want := range map[string]int{
		"$0.output.x": 1, "{result.s}": 1, "${{ s }}": 1, "see {bindings.x.y}": 1,
		"{{ s }}": 0, "{{result.s}}": 0, "{a}": 0, "{ }": 0, "costs $5": 0,
	} {
		require.Len(t, warned(t, flow.KindOrchestration, `{"steps":[{"agent":{"agent_id":"a","prompt":"`+text+`"}}]}`), want, text)
	}
	require.Empty(t, warned(t, flow.KindPlan, `{"calls":7}`))
	require.Empty(t, warned(t, flow.KindOrchestration, `{"steps":[7,{"agent":7},{"parallel":7}]}`))
}

func schemaOf(t *testing.T, text string) *flow.Schema {
	t.Helper()
	s, err := flow.NewSchema(json.RawMessage(text))
	require.NoError(t, err)
	return s
}

func inputOf(t *testing.T, text string) *model.Model {
	t.Helper()
	m, err := model.CompileSchema("tool", json.RawMessage(text))
	require.NoError(t, err)
	return m
}

func TestMessagesStateTheFix(t *testing.T) {
	t.Parallel()
	find := flow.Tool{Name: "find", Output: schemaOf(t, `{"type":"object","properties":{"hotels":{"type":"array","items":{"type":"object","properties":{"id":{}}}}}}`)}
	need := flow.Tool{Name: "need", Input: inputOf(t, `{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`)}
	agent := flow.Tool{Name: "writer", Input: inputOf(t, `{"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string"}}}`)}
	o := flow.Options{Tools: flow.ToolList{find, need, agent}}
	call := func(arguments string) string {
		return `{"type":"tool_calls","calls":[{"tool_name":"find"},{"tool_name":"need","arguments":` + arguments + `}]}`
	}
	for data, want := range map[string]string{
		call(`{"id":"$0.output.hotels.id"}`):  "it has elements, since it is an array: write the number of one",
		call(`{"id":"$0.output.hotels..id"}`): "has an empty name between two dots or at its end",
		`{"type":"tool_calls","calls":[{"tool_name":"need","arguments":{"id":"x"}},{"tool_name":"find","arguments":{"x":"$0.output.id"}}]}`: "declares no output schema (declare output in the manifest)",
		`{"type":"tool_calls","calls":[{"tool":"need","arguments":{"id":"x"}}]}`:                                                            `tool_name is missing; did you mean tool_name in place of "tool"?`,
		`{"type":"tool_calls","calls":[{"tool_name":"need","args":{"id":"x"}}]}`:                                                            `its key "args" is ignored; did you mean arguments?`,
	} {
		_, err := flow.CompilePlan(decoded(t, data), o)
		require.ErrorContains(t, err, want, data)
	}
	for data, want := range map[string]struct{ path, message string }{
		`{"steps":[{"agent":{"agent_id":"writer"}}]}`:                                             {"/steps/0/agent/prompt", "/prompt: is missing"},
		`{"steps":[{"agent":{"agent_id":"writer","with":{}}}]}`:                                   {"/steps/0/agent/prompt", "/prompt: is missing"},
		`{"steps":[{"agent":{"agent_id":"writer","prompt":7}}]}`:                                  {"/steps/0/agent/prompt", "prompt has to be a string, got number"},
		`{"steps":[{"agents":{"agent_id":"writer"},"parallel":{"steps":[{"agent_id":"find"}]}}]}`: {"/steps/0/agents", `Did you mean "agent"?`},
	} {
		plan, ok := decoded(t, data).(map[string]any)
		require.True(t, ok)
		_, err := flow.CompileOrchestration(plan, flow.Request{}, o)
		var refused *flow.Refused
		require.ErrorAs(t, err, &refused, data)
		require.Len(t, refused.Problems, 1, data)
		require.Equal(t, want.path, refused.Problems[0].Path)
		require.Contains(t, refused.Problems[0].Message, want.message)
	}
}

func TestAWholeReferenceThatNeverFitsItsArgumentIsRefusedBeforeTheRun(t *testing.T) {
	t.Parallel()
	score := flow.Tool{Name: "score", Output: schemaOf(t, `{"type":"object","properties":{"score":{"type":"integer"},"any":{}}}`)}
	writer := flow.Tool{
		Name: "writer", Input: inputOf(t, `{"type":"object","properties":{"prompt":{"type":"string"},"n":{"type":"number"}}}`),
		Arguments: schemaOf(t, `{"type":"object","properties":{"prompt":{"type":"string"},"n":{"type":"number"}}}`),
	}
	o := flow.Options{Tools: flow.ToolList{score, writer}}
	compile := func(steps string) error {
		plan, ok := decoded(t, `{"bindings":{"b":7},"steps":[`+steps+`]}`).(map[string]any)
		require.True(t, ok)
		_, err := flow.CompileOrchestration(plan, flow.Request{}, o)
		return err
	}
	first := `{"agent":{"agent_id":"score","result_key":"s"}},`
	group := `{"parallel":{"result_key":"g","steps":[{"agent_id":"score","result_key":"s"}]}},`
	race := `{"parallel":{"result_key":"g","merge_strategy":"first_success","steps":[{"agent_id":"score"},{"agent_id":"writer"}]}},`
	for _, fits := range []string{
		first + `{"agent":{"agent_id":"writer","prompt":"Score: {{ s.score }}","with":{"n":"{{ s.score }}"}}}`,
		first + `{"agent":{"agent_id":"writer","prompt":"{{ s.any }}"}}`,
		race + `{"agent":{"agent_id":"writer","prompt":"{{ g.score }}"}}`, // the other agent may win, and declares no output
		`{"agent":{"agent_id":"writer","prompt":"{{ b }}"}}`,
	} {
		require.NoError(t, compile(fits), fits)
	}
	for _, steps := range []string{
		first + `{"agent":{"agent_id":"writer","prompt":"{{ s.score }}"}}`,
		group + `{"agent":{"agent_id":"writer","prompt":"{{ g.s.score }}"}}`,
		group + `{"agent":{"agent_id":"writer","prompt":"{{ g }}"}}`,
	} {
		err := compile(steps)
		var refused *flow.Refused
		require.ErrorAs(t, err, &refused, steps)
		require.Len(t, refused.Problems, 1)
		require.Equal(t, flow.RuleTypeMismatch, refused.Problems[0].Rule)
		require.Equal(t, "/steps/1/agent/prompt", refused.Problems[0].Path)
		require.ErrorContains(t, err, "argument prompt of agent writer has to be string. A reference that is the whole text keeps its type; with text around it")
	}
}
