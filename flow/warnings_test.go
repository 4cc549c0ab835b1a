package flow_test

import (
	"encoding/json"
	"strconv"
	"strings"
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
	for _, w := range flow.Warnings(kind, object, nil) {
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

// messages are the warnings about data for tools with a place, as "place: message".
func messages(t *testing.T, kind flow.Kind, data string, tools flow.Tools) []string {
	t.Helper()
	object, ok := decoded(t, data).(map[string]any)
	require.True(t, ok)
	texts := []string{}
	for _, w := range flow.Warnings(kind, object, tools) {
		texts = append(texts, w.Path+": "+w.Message)
	}
	return texts
}

func TestArgumentsThatAToolDoesNotDeclareAreWarnedOf(t *testing.T) {
	t.Parallel()
	tool := func(name, schema string) flow.Tool {
		return flow.Tool{Name: name, Input: inputOf(t, schema), Arguments: schemaOf(t, schema)}
	}
	tools := flow.ToolList{
		tool("closed", `{"type":"object","properties":{"city":{"type":"string"}},"additionalProperties":false}`),
		tool("deep", `{"type":"object","properties":{"to":{"type":"object","properties":{"city":{},"free":{"type":"object"}}},"list":{"type":"array","items":{"properties":{"id":{}}}}}}`),
		tool("find", `{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"}}}`),
		tool("free", `{"type":"object","properties":{"city":{}},"additionalProperties":true}`),
		{Name: "none"},
		tool("some", `{"type":"object","properties":{"city":{}},"patternProperties":{"^x":{}}}`),
	}
	const undeclared = `tool find does not declare argument `
	for arguments, want := range map[string][]string{
		`find {"cty":"x"}`:                               {`cty: ` + undeclared + `"cty"; it declares city, nights. Did you mean "city"?`},
		`find {"city":"x","z":{"any":1},"night":2}`:      {`night: ` + undeclared + `"night"; it declares city, nights. Did you mean "nights"?`, `z: ` + undeclared + `"z"; it declares city, nights.`},
		`find {"City":"x","night-s":1}`:                  {},
		`closed {"City":"x"}`:                            {`City: tool closed does not declare argument "City"; it declares city. Did you mean "city"?`},
		`free {"cty":"x"}`:                               {},
		`none {"cty":"x"}`:                               {},
		`some {"xyz":1,"cty":2}`:                         {`cty: tool some does not declare argument "cty"; it declares city. Did you mean "city"?`},
		`deep {"to":{"citty":1,"free":{"a":1}}}`:         {`to/citty: tool deep does not declare a field of argument to "citty"; it declares city, free. Did you mean "city"?`},
		`deep {"to":"text","list":[{"id":1},{"idd":1}]}`: {`list/1/idd: tool deep does not declare a field of argument list.1 "idd"; it declares id. Did you mean "id"?`},
	} {
		name, object, _ := strings.Cut(arguments, " ")
		texts := messages(t, flow.KindPlan, `{"type":"tool_calls","calls":[{"tool_name":"`+name+`","arguments":`+object+`}]}`, tools)
		require.Equal(t, prefixed("/calls/0/arguments/", want), texts, arguments)
		texts = messages(t, flow.KindOrchestration, `{"steps":[{"parallel":{"steps":[{"agent_id":"`+name+`","with":`+object+`}]}}]}`, tools)
		require.Equal(t, prefixed("/steps/0/parallel/steps/0/with/", want), texts, arguments)
	}
	require.Equal(t, []string{`/steps/0/agent/prompt: tool find does not declare argument "prompt"; it declares city, nights.`},
		messages(t, flow.KindOrchestration, `{"steps":[{"agent":{"agent_id":"find","prompt":"x","with":{"city":"{{ bindings.c }}"}}}]}`, tools))
}

func prefixed(prefix string, texts []string) []string {
	with := make([]string, len(texts))
	for i, text := range texts {
		with[i] = prefix + text
	}
	return with
}

func TestKeysThatAreIgnoredAreWarnedOf(t *testing.T) {
	t.Parallel()
	inner := flow.ToolList{{Name: "find", Arguments: schemaOf(t, `{"properties":{"city":{}}}`)}}
	tools := flow.ToolList{{Name: "cp", Program: flow.KindOrchestration, Steps: inner}, {Name: "run_plan", Program: flow.KindPlan, Steps: inner}}
	call := func(tool, arguments string) string {
		return `{"type":"tool_calls","calls":[{"tool_name":"` + tool + `","arguments":` + arguments + `}]}`
	}
	for data, want := range map[string][]string{
		`{"type":"tool_calls","reasoning":"","calls":[]}`: {},
		`{"type":"direct_response","content":"x"}`:        {},
		`{"plan":{"type":"tool_calls","calls":[]}}`:       {},
		`{"prompt":"x"}`:                                                                                {},
		`{"type":"tool_calls","toolcalls":[]}`:                                                          {`/toolcalls: the key "toolcalls" is ignored; did you mean calls?`},
		`{"type":"tool_calls","tool_calls":[]}`:                                                         {`/tool_calls: the key "tool_calls" is ignored; did you mean calls?`},
		`{"type":"tool_calls","calls":[],"reasonning":"","x":1}`:                                        {`/reasonning: the key "reasonning" is ignored; did you mean reasoning?`, `/x: the key "x" is ignored: a plan has type, reasoning and calls`},
		`{"type":"direct_response","content":"x","calls":[]}`:                                           {`/calls: calls are ignored: type is "direct_response"`},
		`{"type":"tool_calls","content":"x","calls":[]}`:                                                {`/content: content is ignored: type is "tool_calls"`},
		`{"plan":{"type":"tool_calls","callss":[]},"note":1}`:                                           {`/note: the key "note" is ignored: the plan is under the key plan`, `/callss: the key "callss" is ignored; did you mean calls?`},
		`{"type":"tool_calls","calls":[{"tool_nam":"x"}]}`:                                              {`/calls/0/tool_nam: the key "tool_nam" is ignored; did you mean tool_name?`},
		call("run_plan", `{"plan":{"type":"tool_calls","calls":[{"tool_name":"find","argumnts":{}}]}}`): {`/calls/0/arguments/plan/calls/0/argumnts: the key "argumnts" is ignored; did you mean arguments?`},
		call("run_plan", `{"plan":{"type":"tool_calls","calls":[{"tool_name":"find","arguments":{"cit":"$0"}}]}}`): {
			`/calls/0/arguments/plan/calls/0/arguments/cit: "$0" looks like a reference and is passed as text: write $<number of an earlier call>.output.<field> as the whole text, if it is meant as one`,
			`/calls/0/arguments/plan/calls/0/arguments/cit: tool find does not declare argument "cit"; it declares city. Did you mean "city"?`,
		},
		call("run_plan", `{"pln":{}}`): {`/calls/0/arguments/pln: the key "pln" is ignored; did you mean plan?`},
		call("cp", `{"plan":{"steps":[],"bindngs":{}},"max":1}`): {
			`/calls/0/arguments/max: the key "max" is not a key of a request: the call ends as validation_failed when it starts`,
			`/calls/0/arguments/plan/bindngs: the key "bindngs" is ignored; did you mean bindings?`,
		},
	} {
		require.Equal(t, want, messages(t, flow.KindPlan, data, tools), data)
	}
	for data, want := range map[string][]string{
		`{"id":"p","name":"n","steps":[],"timeout_ms":1}`:  {},
		`{"plan":{"id":"p","steps":[]},"x":1}`:             {}, // an error of a run
		`{"plan":{"steps":[],"binding":{}},"bindings":{}}`: {`/binding: the key "binding" is ignored; did you mean bindings?`},
		`{"steps":[],"max_paralel":3,"x":1}`:               {`/max_paralel: the key "max_paralel" is ignored; did you mean max_parallel?`, `/x: the key "x" is ignored: an orchestration has steps and bindings`},
	} {
		require.Equal(t, want, messages(t, flow.KindOrchestration, data, tools), data)
	}
}

func TestWarningsOfHostileDataAreBounded(t *testing.T) {
	t.Parallel()
	find := flow.Tool{Name: "find", Arguments: schemaOf(t, `{"properties":{"city":{}}}`)}
	loop := flow.Tool{Name: "run_plan", Program: flow.KindPlan} // its steps may call it again
	tools := flow.ToolList{find, loop}
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = `"` + strings.Repeat("k", 100) + strconv.Itoa(i) + `":1`
	}
	many := strings.Join(keys, ",")
	data := `{"type":"tool_calls","calls":[{"tool_name":"find","arguments":{` + many + `}}],` + many + `}`
	require.Len(t, messages(t, flow.KindPlan, data, tools), flow.MaxProblems)

	nested := `{"type":"tool_calls","calls":[],"x":1}`
	for range 8 {
		nested = `{"type":"tool_calls","x":1,"calls":[{"tool_name":"run_plan","arguments":{"plan":` + nested + `}}]}`
	}
	require.Len(t, messages(t, flow.KindPlan, nested, tools), 3, "as deep as programs may be nested")
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
		`{"type":"tool_calls","toolcalls":[]}`: `calls is missing; did you mean calls in place of "toolcalls"?`,
		`{"type":"tool_calls"}`:                `calls is missing; it has to be an array`,
		`{"type":"toolcalls"}`:                 `type has to be "tool_calls" or "direct_response"; it is "toolcalls"`,
		`{"kind":"tool_calls"}`:                `did you mean type in place of "kind"?`,
		`{"steps":[]}`:                         `this looks like an orchestration, which is run by a tool of kind orchestrate`,
		`{"type":"tool_calls","calls":[{"tool_nme":"need","arguments":{}}]}`:     `tool_name is missing; did you mean tool_name in place of "tool_nme"?`,
		`{"type":"tool_calls","calls":[{"tool":"need","arguments":{"id":"x"}}]}`: `tool_name is missing; did you mean tool_name in place of "tool"?`,
		`{"type":"tool_calls","calls":[{"tool_name":"need","args":{"id":"x"}}]}`: `its key "args" is ignored; did you mean arguments?`,
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
