package program_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestPlannerLearnsTheToolsOfStepsByTheNamesOfPrograms(t *testing.T) {
	t.Parallel()
	describe := func(b *bindings.Binding) (tools.Description, bool) {
		return tools.Description{Text: "knows " + b.Tool, Output: json.RawMessage(`{"type":"object"}`)}, b.Tool == "review"
	}
	c := compiler(t, "cp__agent_orchestrate", describe)
	_, ask, err := c.Compile(decoded(t, `{"prompt":"judge it","bindings":{"text":"x"}}`))
	require.NoError(t, err)
	p := c.Planner(ask)
	require.Equal(t, flow.KindOrchestration, p.Kind)
	require.True(t, p.Responds)
	require.True(t, p.Options.Planned)
	require.Equal(t, "critic", p.Tools[0].Name, "an agent is named by its id")
	require.Equal(t, "knows review", p.Tools[0].Description)
	require.JSONEq(t, `{"type":"object"}`, string(p.Tools[0].Output))
	require.Equal(t, "inner", p.Tools[1].Name)
	require.Contains(t, string(p.Tools[1].Arguments), `"plan"`)
	require.Equal(t, "search", p.Tools[2].Name)
	require.Contains(t, string(p.Tools[2].Arguments), "city")
	require.Len(t, p.Tools, 3, "neither the planner nor tools that no step may call")

	planned, err := p.Plan(t.Context(), func(_ context.Context, r planner.Request) (json.RawMessage, error) {
		require.Contains(t, r.Messages[0].Content, "judge it")
		return json.RawMessage(`{"steps":[{"id":"s1","agent":{"agent_id":"critic","prompt":"Judge {{ bindings.text }}"}}]}`), nil
	})
	require.NoError(t, err)
	require.Equal(t, "review", planned.Program.Steps[0].Calls[0].Tool)
	_, err = p.Compile(json.RawMessage(`{"steps":[{"id":"s1","agent":{"agent_id":"inner","with":{"prompt":"and so on"}}}]}`))
	var refused *flow.Refused
	require.ErrorAs(t, err, &refused)
	require.Equal(t, flow.ReasonPlannerRecursion, refused.Reason)
}

func TestPlannerOfAPlanLearnsModelsOfBindings(t *testing.T) {
	t.Parallel()
	p := compiler(t, "run_plan", nil).Planner(&flow.Request{Prompt: "x"})
	require.Equal(t, flow.KindPlan, p.Kind)
	require.False(t, p.Responds)
	byName := map[string]planner.Tool{}
	for _, tool := range p.Tools {
		byName[tool.Name] = tool
	}
	require.Contains(t, string(byName["note"].Arguments), "text")
	require.Contains(t, byName, "review")
	require.Equal(t, bindings.EffectKeyed, byName["save"].Effect)
	require.Nil(t, byName["save"].Output)
}
