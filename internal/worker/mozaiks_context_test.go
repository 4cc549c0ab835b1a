package worker_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
)

// generations are workflows as MozaiksAI had them: in JSON with enterprise_id until January 2026, in
// YAML with app_id after that.
var generations = map[string]map[string]string{
	"older": {
		"agents.json":             `{"agents": {"Planner": {"auto_tool_mode": true}}}`,
		"structured_outputs.json": `{"structured_outputs": {"models": {"Plan": {"type": "model", "fields": {"title": {"type": "str"}}}}, "registry": {"Planner": "Plan"}}}`,
		"tools.json":              `{"tools": [{"agent": "Planner", "file": "plan.py", "function": "plan", "tool_type": "UI_Tool"}]}`,
		"tools/plan.py": `
async def plan(title, context_variables=None):
    chat_id, enterprise_id = context_variables.get("chat_id"), context_variables.get("enterprise_id")
    if not chat_id or not enterprise_id:
        raise ValueError("chat_id and enterprise_id are required")
    seen = dict(context_variables.data)
    context_variables.set("action_plan", title)
    context_variables.set("accepted", True)
    return {"status": "success", "seen": seen}
`,
	},
	"newer": {
		"agents.yaml":             "agents: [{name: Planner, auto_tool_mode: true}]",
		"structured_outputs.yaml": "structured_outputs: {models: {Plan: {type: model, fields: {title: {type: str}}}}, registry: {Planner: Plan}}",
		"tools.yaml":              "tools: [{agent: Planner, file: plan.py, function: plan, tool_type: UI_Tool}]",
		"tools/plan.py":           "def plan(context_variables): return {'status': 'success', 'seen': context_variables.to_dict()}\n",
	},
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

func TestContextContainerHoldsWhatTheHandlersOfEachGenerationPutThere(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, files := range generations {
		writeFiles(t, filepath.Join(root, name), files)
	}
	s := server(t)
	start(t, s, oneturn.Config{Workflows: root})
	c := client(t, s)
	seen := func(workflow, chat, key, context string) map[string]any {
		t.Helper()
		published, _, err := c.PublishRaw(t.Context(), []byte(`{"agent_name":"Planner","model_name":"Plan","structured_data":{"title":"`+key+`"},"auto_tool_mode":true,"turn_idempotency_key":"`+key+
			`","context":{"chat_id":"`+chat+`","workflow_name":"`+workflow+`"`+context+`}}`))
		require.NoError(t, err)
		r := await(t, c, published.TurnID)
		require.Empty(t, r.Code, r.Content)
		got := object(t, object(t, r.Payload)["seen"])
		require.Equal(t, key, got["turn_idempotency_key"])
		require.Equal(t, "Planner", got["agent_name"])
		require.Equal(t, workflow, got["workflow_name"])
		require.Equal(t, chat, got["chat_id"])
		for _, name := range []string{"turn_idempotency_key", "agent_name", "workflow_name", "chat_id"} {
			delete(got, name)
		}
		return got
	}
	older := func(more map[string]any) map[string]any {
		want := map[string]any{"app_id": "acme", "enterprise_id": "acme"}
		maps.Copy(want, more)
		return want
	}
	const snapshot = `,"context_variables":{"action_plan":null,"accepted":false,"topic":"tea","enterprise_id":"forged"}`
	plain := map[string]any{"action_plan": nil, "accepted": false, "topic": "tea"}
	planned := map[string]any{"action_plan": "two", "accepted": true, "topic": "tea"}

	require.Equal(t, older(nil), seen("older", "c", "one", `,"app_id":"acme"`))
	require.Equal(t, older(plain), seen("older", "d", "two", `,"app_id":"acme"`+snapshot))
	require.Equal(t, older(planned), seen("older", "d", "three", `,"enterprise_id":"acme"`+snapshot), "the producer repeats what it had before the tool ran")
	changed := older(map[string]any{"action_plan": "mine", "accepted": true, "user_id": "ada"})
	require.Equal(t, changed, seen("older", "d", "four", `,"app_id":"acme","user_id":"ada","context_variables":{"action_plan":"mine"}`), "the producer has changed it since")
	require.Equal(t, older(map[string]any{"action_plan": "four", "accepted": true}), seen("older", "d", "five", `,"app_id":"acme"`), "without a snapshot")

	require.Equal(t, map[string]any{"app_id": "acme"}, seen("newer", "e", "six", `,"app_id":"acme"`))
	require.Equal(t, older(map[string]any{"user_id": "bob"}), seen("newer", "e", "seven", `,"enterprise_id":"acme","user_id":"bob"`), "the event is of the older generation")
	require.Equal(t, map[string]any{"app_id": "acme"}, seen("newer", "e", "eight", `,"enterprise_id":"other","app_id":"acme"`))
}
