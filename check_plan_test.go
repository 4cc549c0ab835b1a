package oneturn_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

const planManifest = `
agents: {Assistant: {}}
tools:
- {name: run_plan, kind: plan, agent: Assistant}
- {name: search, kind: go, auto: false, effect: none, output: {type: object, properties: {hotel: {type: string}}}}
- {name: reserve, auto: false, effect: keyed, nats: {service: hotels, endpoint: reserve}}
`

func planCalls(hotel string) map[string]any {
	return map[string]any{"type": "tool_calls", "calls": []any{
		map[string]any{"tool_name": "search"},
		map[string]any{"tool_name": "reserve", "arguments": map[string]any{"hotel": hotel}},
	}}
}

// TestCheckPlanReportsWhatARunWouldDoWithoutAWorker has a service that declares its arguments.
func TestCheckPlanReportsWhatARunWouldDoWithoutAWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oneturn.yaml"), []byte(planManifest), 0o600))
	nc := oneturntest.NewServer(t).Connect()
	service, err := micro.AddService(nc, micro.Config{Name: "hotels", Version: "1.0.0"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = service.Stop() })
	schema := `{"type":"object","properties":{"hotel":{"type":"string","maxLength":20}},"required":["hotel"]}`
	require.NoError(t, service.AddEndpoint("reserve", micro.HandlerFunc(func(micro.Request) { t.Error("the tool was called") }),
		micro.WithEndpointSubject("hotels.reserve"), micro.WithEndpointMetadata(map[string]string{"oneturn-input": schema})))
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	set, err := bindings.Load(t.Context(), bindings.Options{Root: dir})
	require.NoError(t, err)

	got, err := client.CheckPlan(t.Context(), &oneturn.PlanToCheck{Workflows: dir, Workflow: set.Workflows()[0], Data: planCalls("$0.output.hotel")})
	require.NoError(t, err)
	require.Equal(t, &oneturn.PlanCheck{
		Tool: "run_plan", Runs: true, Writes: 7, Errors: got.Errors,
		Steps: []oneturn.PlanStep{{Call: "0", Tool: "search", Effect: oneturn.ReadOnly, Needs: []string{}}, {Call: "1", Tool: "reserve", Effect: oneturn.Keyed, Needs: []string{"0"}}},
	}, got)
	require.Empty(t, got.Errors)

	got, err = client.CheckPlan(t.Context(), &oneturn.PlanToCheck{Bindings: set, Workflow: set.Workflows()[0], Data: planCalls("a name that is far too long")})
	require.NoError(t, err)
	require.False(t, got.Runs)
	require.Equal(t, events.CodeValidationFailed, got.Code)
	require.Len(t, got.Errors, 1)
	require.Contains(t, got.Feedback, "/calls/1/arguments/hotel")

	for _, test := range []struct {
		plan oneturn.PlanToCheck
		want string
	}{
		{oneturn.PlanToCheck{}, "check plan: bad_args: set PlanToCheck.Workflows or PlanToCheck.Bindings"},
		{oneturn.PlanToCheck{Bindings: set, Workflow: "None"}, `workflow "None"`},
		{oneturn.PlanToCheck{Bindings: set, Workflow: set.Workflows()[0], Tool: "search"}, `tool "search" is of kind go and runs no programs`},
		{oneturn.PlanToCheck{Workflows: filepath.Join(dir, "none")}, "open the workflows folder"},
		{oneturn.PlanToCheck{Bindings: set, Data: make(chan int)}, "write PlanToCheck.Data as JSON"},
		{oneturn.PlanToCheck{Bindings: set, Data: json.Number("1e999")}, "check plan"},
	} {
		_, err := client.CheckPlan(t.Context(), &test.plan)
		require.ErrorContains(t, err, test.want)
	}
}

func TestCheckPlanWarnsAndNamesWhoTakesPart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "W", "tools"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "W", "oneturn.yaml"), []byte(`
agents: {Assistant: {}, Other: {}}
tools:
- {name: run_plan, kind: plan, agent: Assistant, uses: [find, pay], approve: true, respond: pay}
- {name: inner, kind: plan, auto: false}
- {name: find, file: trip.py, auto: false}
- {name: pay, kind: go, auto: false, input: {type: object, properties: {cents: {type: integer}}}}
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "W", "tools", "trip.py"), []byte("def find(city, nights=1): return {}\n"), 0o600))
	client, err := oneturn.NewClient(oneturntest.NewServer(t).Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	check := &oneturn.PlanToCheck{Workflows: dir, Workflow: "W", Data: json.RawMessage(`{"type": "tool_calls", "note": 1, "calls": [
		{"tool_name": "find", "arguments": {"city": "Rome", "nigths": 2}}, {"tool_name": "pay", "arguments": {"cent": 3}}]}`)}
	got, err := client.CheckPlan(t.Context(), check)
	require.NoError(t, err)
	require.Equal(t, "run_plan", got.Tool, "the automatic one")
	require.True(t, got.Runs)
	require.True(t, got.Approve)
	require.Equal(t, "pay", got.Respond)
	var paths []string
	for _, w := range got.Warnings {
		paths = append(paths, w.Path+" "+w.Rule)
	}
	require.Equal(t, []string{"/note ignored", "/calls/0/arguments/nigths undeclared", "/calls/1/arguments/cent undeclared"}, paths)
	require.Contains(t, got.Warnings[1].Message, `tool find does not declare argument "nigths"; it declares city, nights. Did you mean "nights"?`)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "W", "oneturn.yaml"), []byte("agents: {A: {}, B: {}}\ntools: [{name: a, kind: plan, agent: A}, {name: b, kind: plan, agent: B}]\n"), 0o600))
	_, err = client.CheckPlan(t.Context(), check)
	require.ErrorContains(t, err, "several tools for it (a of agent A, b of agent B): set PlanToCheck.Tool, or PlanToCheck.Agent to the agent of one")
}
