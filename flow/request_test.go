package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/flow"
)

func TestOrchestrationMayBeThePlanItself(t *testing.T) {
	t.Parallel()
	o := flow.Options{Tools: flow.ToolList{{Name: "facts"}}}
	const steps = `"steps":[{"agent":{"agent_id":"facts","prompt":"{{ bindings.topic }}"}}]`
	for _, data := range []string{
		`{"plan":{"id":"p",` + steps + `},"bindings":{"topic":"tides"},"timeout_ms":50}`, `{"id":"p",` + steps + `,"bindings":{"topic":"tides"},"timeout_ms":50}`,
	} {
		r, err := flow.ReadRequest(decoded(t, data), o)
		require.NoError(t, err, data)
		require.Equal(t, 50*time.Millisecond, r.Timeout)
		p, err := flow.CompileOrchestration(r.Plan, r, o)
		require.NoError(t, err, data)
		require.Len(t, p.Steps, 1)
		require.Equal(t, map[string]any{"topic": "tides"}, p.Bindings)
	}
	_, err := flow.ReadRequest(decoded(t, `{`+steps+`,"prompt":"and this"}`), o)
	require.ErrorContains(t, err, "either a plan or a prompt")
	_, err = flow.ReadRequest(decoded(t, `{`+steps+`,"plan":{`+steps+`}}`), o)
	require.ErrorContains(t, err, `key "steps" is unknown`)
}

func TestPlanIsTheDataOrItsKeyPlan(t *testing.T) {
	t.Parallel()
	inner := map[string]any{"x": "y"}
	for _, kind := range []flow.Kind{flow.KindPlan, flow.KindOrchestration} {
		require.Equal(t, inner, flow.PlanOf(kind, map[string]any{"plan": inner}))
		require.Equal(t, inner, flow.PlanOf(kind, inner))
		whole := map[string]any{"plan": inner, "type": "tool_calls", "steps": []any{}}
		require.Equal(t, whole, flow.PlanOf(kind, whole))
	}
}
