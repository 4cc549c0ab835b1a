package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

// TestPlanReadyStartsATurnOfTheModelPlan has a plain tool in place of one that runs plans: what counts is the way in.
func TestPlanReadyStartsATurnOfTheModelPlan(t *testing.T) {
	t.Parallel()
	s := server(t)
	steps := func(_ context.Context, plan struct {
		Calls []string `json:"calls"`
	},
	) (int, error) {
		return len(plan.Calls), nil
	}
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{
		oneturn.NewTool("steps", steps, oneturn.ToolOptions{Workflow: "Hello", Agent: "Planner", Model: events.ModelPlan}),
	}})
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	body := func(key, members string) []byte {
		return fmt.Appendf(nil, `{"kind":"plan_ready",%s"turn_idempotency_key":%q,"context":{"app_id":"app","chat_id":"chat","workflow_name":"Hello"}}`, members, key)
	}
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	nc := s.Connect()
	for key, want := range map[string]struct {
		members string
		code    events.Code
	}{
		"runs":               {`"agent":"Planner","plan":{"calls":["a","b"]},`, ""},
		"does not fit":       {`"agent":"Planner","plan":{"calls":3},`, events.CodeValidationFailed},
		"is missing":         {`"agent":"Planner",`, events.CodeValidationFailed},
		"cannot be read":     {`"agent":"Planner","plan":{"calls":[NaN]},`, events.CodeValidationFailed},
		"has a wrong member": {`"agent":7,"plan":{"calls":[]},`, events.CodeValidationFailed},
	} {
		for bare, m := range [][]byte{body(key+" 0", want.members), bytes.Replace(body(key+" 1", want.members), []byte(`"kind":"plan_ready",`), nil, 1)} {
			_, err := nc.Request(space.In(subjects.DefaultPool, events.KindPlanReady, "app", "Hello", "chat"), m, 5*time.Second)
			require.NoError(t, err, key)
			r, err := c.Await(ctx, oneturn.TurnID{App: "app", Chat: "chat", Turn: fmt.Sprint(key, " ", bare)})
			require.NoError(t, err, key)
			require.Equal(t, want.code, r.Code, "%s: %s", key, r.Content)
		}
	}
	turn, _, err := c.PublishRaw(ctx, body("raw", `"agent":"Planner","plan":{"calls":["a","b"]},`))
	require.NoError(t, err)
	r, err := c.AwaitTurn(ctx, turn)
	require.NoError(t, err)
	require.Equal(t, number(2), r.Payload)
	requireDrained(t, s)
}

// TestPlanReadyFindsTheToolForPlansOfItsWorkflow has no tool that is bound to the model plan.
func TestPlanReadyFindsTheToolForPlansOfItsWorkflow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "One/oneturn.yaml", "tools:\n- {name: run_plan, kind: plan, agent: Planner}\n")
	write(t, dir, "None/oneturn.yaml", "tools:\n- {name: run_plan, kind: orchestrate, agent: Planner}\n")
	s := server(t)
	start(t, s, oneturn.Config{Workflows: dir})
	c := client(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for workflow, want := range map[string]string{"One": "run_plan", "None": ""} {
		turn, _, err := c.PublishRaw(ctx, fmt.Appendf(nil, `{"kind":"plan_ready","agent":"A","plan":{"type":"direct_response","content":"done"},"turn_idempotency_key":"t",
			"context":{"app_id":"app","chat_id":%q,"workflow_name":%q}}`, workflow, workflow))
		require.NoError(t, err)
		r, err := c.AwaitTurn(ctx, turn)
		require.NoError(t, err)
		require.Equal(t, want, r.Tool, r.Content)
		if want == "" {
			require.Equal(t, events.CodeNoBinding, r.Code)
			require.Contains(t, r.Content, `workflow "None" runs no plan of agent "A": no tool has kind: plan`)
		}
	}
}
