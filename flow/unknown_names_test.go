package flow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/flow"
)

func TestReferencesThatLeadNowhereStateWhyAndTheFix(t *testing.T) {
	t.Parallel()
	o := flow.Options{Tools: flow.ToolList{{Name: "facts"}, {Name: "style"}}}
	const group = `{"id":"fan","parallel":{"result_key":"all","steps":[{"agent_id":"facts","result_key":"f.a"},{"agent_id":"style","result_key":"q","prompt":"{{ NAME }}"}]}}`
	const list = `{"id":"one","agent":{"agent_id":"facts"}},{"id":"two","agent":{"agent_id":"style","result_key":"text"}},` +
		`{"id":"fan","parallel":{"result_key":"all","bindings":{"tone":1},"steps":[{"agent_id":"facts","result_key":"fact"},{"agent_id":"facts","prompt":"{{ NAME }}"}]}},` +
		`{"id":"last","agent":{"agent_id":"facts","result_key":"end"}}`
	for steps, messages := range map[string]map[string]string{
		group: {
			"result.f.a.score": `"result.f.a.score" refers to fan[0], which runs at the same time, as all agents of a group do: move the agent that needs it to a later step`,
			"f.a":              `"f.a" refers to fan[0], which runs at the same time`,
			"all.q":            `"all.q" refers to the group that the agent is in, which has no value until all of them have ended: move the agent to a later step`,
			"q":                `"q" refers to the output of the same agent`,
			"x":                `"x" is neither the key of an earlier step nor a binding; there are none here: give an earlier step a result_key, or set bindings`,
		},
		list: {
			"end.x":           `"end.x" refers to last, which runs later: steps run in the order of the list`,
			"one":             `"one" is the id of a step: give it a result_key, and refer to that`,
			"result.two.x":    `"result.two.x" is the id of a step: refer to its result_key, text`,
			"facts":           `"facts" is the agent of step one: give it a result_key, and refer to that`,
			"style":           `"style" is the agent of step two: refer to its result_key, text`,
			"result.texd.a.b": `known: text, bindings.tone. Did you mean "text"?`,
			"bindings.tonne":  `known: text, bindings.tone. Did you mean "bindings.tone"?`,
			"tonne":           `Did you mean "bindings.tone"?`,
			"zzzzz":           `is neither the key of an earlier step nor a binding; known: text, bindings.tone.`,
		},
	} {
		for name, want := range messages {
			plan, ok := decoded(t, strings.Replace(`{"steps":[`+steps+`]}`, "NAME", name, 1)).(map[string]any)
			require.True(t, ok)
			_, err := flow.CompileOrchestration(plan, flow.Request{}, o)
			var refused *flow.Refused
			require.ErrorAs(t, err, &refused, name)
			require.Len(t, refused.Problems, 1, name)
			require.Equal(t, flow.RuleReference, refused.Problems[0].Rule)
			require.Contains(t, refused.Problems[0].Message, want)
		}
	}
}

func TestOrchestrationsThatAreProbablyMeantOtherwiseStateHow(t *testing.T) {
	t.Parallel()
	o := flow.Options{Tools: flow.ToolList{{Name: "facts"}}}
	for data, want := range map[string]string{
		`{"type":"tool_calls","calls":[{"tool_name":"facts"}]}`: "the request has to have either a plan or a prompt that is not blank; this looks like a plan, which is run by a tool of kind plan",
		`{"prompt":" "}`: "the request has to have either a plan or a prompt that is not blank",
		`{"plan":{"steps":[{"id":"step_2","agent":{"agent_id":"facts"}},{"agent":{"agent_id":"facts"}}]}}`:     `the default id "step_2" is used by an earlier step`,
		`{"plan":{"steps":[{"id":"a","agent":{"agent_id":"facts"}},{"id":"a","agent":{"agent_id":"facts"}}]}}`: `id "a" is used by an earlier step`,
	} {
		request, err := flow.ReadRequest(decoded(t, data), o)
		if err == nil {
			_, err = flow.CompileOrchestration(request.Plan, request, o)
		}
		var refused *flow.Refused
		require.ErrorAs(t, err, &refused, data)
		require.Equal(t, want, refused.Problems[0].Message)
	}
}
