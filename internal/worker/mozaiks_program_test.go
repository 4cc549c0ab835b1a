package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
)

// Plans of workflows with the manifests of MozaiksAI call its other tools, also those that no agent's output calls by itself.
func TestPlanOfAWorkflowOfMozaiksAIRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "Trip/agents.yaml", "agents:\n  Planner: {auto_tool_mode: true}\n  Traveller: {auto_tool_mode: true}\n")
	write(t, dir, "Trip/structured_outputs.yaml", "structured_outputs:\n  models:\n    Place: {type: model, fields: {city: {type: str}}}\n  registry: {Traveller: Place}\n")
	write(t, dir, "Trip/tools.yaml", `tools:
- {name: run_plan, agent: Planner, kind: plan, tool_type: UI_Tool, file: plan.py, function: run, uses: [find_hotels]}
- {agent: Traveller, file: hotels.py, function: find_hotels, effect: none, tool_type: Agent_Tool}
`)
	write(t, dir, "Trip/tools/hotels.py", "def find_hotels(city):\n    return {'hotels': [city + ' Inn']}\n")
	s := server(t)
	start(t, s, oneturn.Config{Workflows: dir})
	c := client(t, s)
	one := &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat 1", Turn: "t1"}, Workflow: "Trip", Agent: "Planner",
		Data: map[string]any{"type": "tool_calls", "calls": []any{map[string]any{"tool_name": "find_hotels", "arguments": map[string]any{"city": "Oslo"}}}},
	}
	publish(t, c, one)
	r := await(t, c, one.TurnID)
	require.True(t, r.Success, r.Content)
	payload, ok := r.Payload.(map[string]any)
	require.True(t, ok)
	results, ok := payload["results"].([]any)
	require.True(t, ok)
	require.Equal(t, map[string]any{"hotels": []any{"Oslo Inn"}}, results[0].(map[string]any)["output"]) //nolint:forcetypeassert // it is a result
}
