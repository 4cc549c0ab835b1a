package planner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
)

func TestSummaryListsCallsWithTheirResultsAndErrors(t *testing.T) {
	t.Parallel()
	offline := "printer\noffline"
	r := flow.PlanResult{
		Results: []flow.CallResult{
			{ToolName: "find_order", Success: true, Output: map[string]any{"order_id": "A-1709", "lines": []any{json.Number("1")}}},
			{ToolName: "print_label", Error: &offline},
		},
		Skipped: []string{"2"},
	}
	require.Equal(t, `1. find_order - SUCCESS
   Result: {
     "lines": [
       1
     ],
     "order_id": "A-1709"
   }

2. print_label - FAILED
   Error: printer offline

1 later call was not started.`, planner.PlanSummary(r))
	require.Equal(t, "Tool execution failed: print_label: printer offline", planner.Fallback(r))
	require.Empty(t, planner.PlanSummary(flow.PlanResult{}))
	require.Empty(t, planner.Fallback(flow.PlanResult{}))
}

func TestSummaryOfAnOrchestrationNamesAgentsAndSteps(t *testing.T) {
	t.Parallel()
	r := flow.OrchestrationResult{
		Steps: []flow.StepResult{
			{ID: "s1", Type: "agent", Status: flow.StatusSuccess, Output: "facts"},
			{ID: "fan", Type: "parallel", Status: flow.StatusPartial, Children: []flow.StepResult{
				{ID: "fan[0]", Type: "agent", Status: flow.StatusFailed, Error: &flow.CallError{Code: "timeout", Message: "no answer in time"}},
				{ID: "fan[1]", Type: "agent", Status: flow.StatusSkipped},
			}},
		},
		Errors: []flow.StepError{{StepID: "fan[0]", Error: "no answer in time"}},
	}
	p := &flow.Program{Steps: []flow.Step{
		{ID: "s1", Calls: []flow.Call{{ID: "s1", Tool: "gather"}}}, {ID: "fan", Group: true, Calls: []flow.Call{{ID: "fan[0]", Tool: "agent:critic"}}},
	}}
	require.Equal(t, "1. gather (s1) - SUCCESS\n   Result: \"facts\"\n\n2. critic (fan[0]) - FAILED\n   Error: no answer in time\n\n3. fan[1] - SKIPPED",
		planner.OrchestrationSummary(p, r))
	require.Equal(t, "Tool execution failed: critic (fan[0]): no answer in time", planner.OrchestrationFallback(p, r))
}

func TestSummaryOfARefusedPlanHasALineForEachProblem(t *testing.T) {
	t.Parallel()
	_, err := shop(t, flow.KindPlan).Compile(json.RawMessage(badPlan))
	var refused *flow.Refused
	require.ErrorAs(t, err, &refused)
	summary := planner.RefusedSummary(refused)
	require.True(t, strings.HasPrefix(summary, "Plan validation failed:\n- call 0, argument order_id: "), summary)
	require.Contains(t, summary, "$missing.output.value")
}

func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 50} {
		var r flow.PlanResult
		for i := range n {
			message := strings.Repeat("e", 100_000)
			r.Results = append(r.Results,
				flow.CallResult{ToolName: fmt.Sprintf("tool_%d", i), Success: true, Output: strings.Repeat("a", 1<<20)},
				flow.CallResult{ToolName: "broken", Error: &message})
		}
		summary := planner.PlanSummary(r)
		require.Less(t, len(summary), 160<<10)
		require.Contains(t, summary, fmt.Sprintf("%d. broken - FAILED", 2*n))
		require.Contains(t, summary, "(cut; it had 1048578 bytes)")
		require.LessOrEqual(t, len(planner.Fallback(r)), events.MaxText)
	}
}

func TestResponderGetsRequestPlanAndSummaryAsData(t *testing.T) {
	t.Parallel()
	plan, err := events.Decode([]byte(goodPlan))
	require.NoError(t, err)
	r := planner.Responder{Prompt: "CANARY-1", Plan: plan, Summary: "1. find_order - SUCCESS\n   Result: \"CANARY-2\""}
	request := r.Request()
	require.NotContains(t, request.System, "CANARY")
	require.NotContains(t, request.System, "find_order")
	require.Nil(t, request.Schema)
	require.Nil(t, request.Temperature)
	require.Len(t, request.Messages, 1)
	text := request.Messages[0].Content
	head, rest, ok := strings.Cut(text, "\n\nTool Execution Complete\n\n")
	require.True(t, ok)
	require.JSONEq(t, `{"request":"CANARY-1","plan":`+goodPlan+`}`, head)
	require.Equal(t, r.Summary, rest)
	args := request.Arguments()
	require.NotContains(t, args, "schema")
	require.NotContains(t, args, "temperature")
	require.Equal(t, map[string]any{"request": "CANARY-1", "plan": plan, "summary": r.Summary}, args["request"])

	outside := planner.Responder{Plan: strings.Repeat("a", 1<<20), Summary: strings.Repeat("b", 1<<20)}
	request = outside.Request()
	require.Contains(t, request.Data, "request", "null, as in the message")
	require.Nil(t, request.Data["request"])
	require.Less(t, len(request.Messages[0].Content), 200<<10)
	require.True(t, strings.HasPrefix(request.Messages[0].Content, `{"plan":null,"request":null}`))
}

func TestAnswerIsTheTextOfTheReply(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		`"Label printed."`: "Label printed.", `{"content":" Label printed.\n"}`: "Label printed.", `{"text":"Label printed."}`: "Label printed.",
		`"<think>hm</think>\nLabel printed."`: "Label printed.",
	} {
		content, err := planner.Content(json.RawMessage(reply))
		require.NoError(t, err, reply)
		require.Equal(t, want, content)
	}
	for _, reply := range []string{``, `null`, `""`, `" "`, `{}`, `{"content":7}`, `[]`, `"<think>hm"`} {
		_, err := planner.Content(json.RawMessage(reply))
		require.Equal(t, events.CodeToolError, events.CodeOf(err), reply)
	}
	long, err := planner.Content(json.RawMessage(`"` + strings.Repeat("a", 1<<20) + `"`))
	require.NoError(t, err)
	require.LessOrEqual(t, len(long), events.MaxText)
}
