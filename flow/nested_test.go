package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/flow"
)

func TestNestedProgramIsCheckedWithTheToolsOfItsSteps(t *testing.T) {
	t.Parallel()
	inner := flow.ToolList{openTool(t, "search")}
	outer := flow.ToolList{{Name: "run_plan", Program: flow.KindPlan, Steps: inner}, openTool(t, "save")}
	nested := func(tool string) string { return `{"type":"tool_calls","calls":[{"tool_name":"` + tool + `"}]}` }

	plan := func(tool string) error {
		text := `{"type":"tool_calls","calls":[{"tool_name":"run_plan","arguments":{"plan":` + nested(tool) + `}},{"tool_name":"save"}]}`
		_, err := flow.CompilePlan(decoded(t, text), flow.Options{Tools: outer})
		return err
	}
	require.NoError(t, plan("search"))
	require.ErrorContains(t, plan("save"), `"save" is not a tool that this plan may call`)

	orchestration := func(tool string) error {
		steps, _ := decoded(t, `{"steps":[{"agent":{"agent_id":"run_plan","with":{"plan":`+nested(tool)+`}}},{"agent":{"agent_id":"save"}}]}`).(map[string]any)
		_, err := flow.CompileOrchestration(steps, flow.Request{}, flow.Options{Tools: outer})
		return err
	}
	require.NoError(t, orchestration("search"))
	require.ErrorContains(t, orchestration("save"), `"save" is not a tool that this plan may call`)
}

func TestFeedbackListsTheFieldsOfTheToolThatTheNestedProgramMayCall(t *testing.T) {
	t.Parallel()
	inner := toolWith(t, `{"properties":{"inner":{}}}`)
	outer := append(toolWith(t, `{"properties":{"outer":{}}}`), flow.Tool{Name: "run_plan", Program: flow.KindPlan, Steps: inner})
	calls := `{"tool_name":"a"},{"tool_name":"a","arguments":{"v":"$0.output.wrong"}}`
	text := `{"type":"tool_calls","calls":[` + calls + `,{"tool_name":"run_plan","arguments":{"plan":{"type":"tool_calls","calls":[` + calls + `]}}}]}`
	_, err := flow.CompilePlan(decoded(t, text), flow.Options{Tools: outer})
	refused, ok := asRefused(err)
	require.True(t, ok)
	require.Len(t, refused.Problems, 2)
	require.Equal(t, []string{"outer"}, refused.Problems[0].Error.AvailableFields)
	require.Equal(t, []string{"inner"}, refused.Problems[1].Error.AvailableFields)
}
