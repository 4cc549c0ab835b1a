package worker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

// plansByPeople is a workflow whose tool asks people, as MozaiksAI's tools do, and returns the context variables that it had.
var plansByPeople = map[string]string{
	"agents.yaml":             "agents: [{name: Planner, auto_tool_mode: true}]",
	"structured_outputs.yaml": "structured_outputs: {models: {Plan: {type: model, fields: {title: {type: str}}}}, registry: {Planner: Plan}}",
	"tools.yaml":              "tools: [{agent: Planner, file: plan.py, function: make_plan, name: plan, tool_type: UI_Tool, ui: {component: ActionPlan, mode: inline}}]",
	"context_variables.yaml": `
definitions:
  choice: {source: {type: state, triggers: [{type: ui_response, tool: make_plan, response_key: data.choice}]}}
  stage: {source: {type: state, default: draft, transitions: [{from: draft, to: review, trigger: {type: ui_response, tool: ActionPlan}}]}}
  missing: {type: boolean, source: {type: state, default: false, triggers: [{type: ui_response, tool: plan, response_key: other}]}}
  mode: {source: {type: config, env_var: PATH, default: test}}
  hidden: {source: {type: config, env_var: HOME, default: unseen}}
  menu: {source: {type: file, path: data/menu.json}}
  user_id: {source: {type: runtime}}
`,
	"tools/plan.py": `
from mozaiksai.core.workflow.outputs.ui_tools import use_ui_tool
async def make_plan(title, context_variables=None):
    seen = context_variables.to_dict()
    await use_ui_tool("ActionPlan", {"title": title}, chat_id=seen["chat_id"], workflow_name="Plans", display="inline")
    return {"status": "success", "seen": seen}
`,
}

func TestToolsSeeStartValuesAndWhatAnswersHaveSet(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFiles(t, filepath.Join(root, "workflows", "Plans"), plansByPeople)
	writeFiles(t, root, map[string]string{"data/menu.json": `["tea"]`})
	s := server(t)
	start(t, s, oneturn.Config{Workflows: filepath.Join(root, "workflows"), ContextEnv: []string{"PAT*"}})
	c := client(t, s)
	human, err := oneturntest.StartHuman(t.Context(), s.Connect(), oneturntest.HumanOptions{
		App: "acme", Rules: []oneturntest.Rule{{Acts: []oneturntest.Act{{Value: map[string]any{"data": map[string]any{"choice": "gold"}}}}}},
	})
	require.NoError(t, err)
	t.Cleanup(human.Stop)
	seen := func(key string) map[string]any {
		t.Helper()
		published, _, err := c.PublishRaw(t.Context(), []byte(`{"agent_name":"Planner","model_name":"Plan","structured_data":{"title":"x"},"auto_tool_mode":true,"turn_idempotency_key":"`+key+
			`","context":{"chat_id":"c","app_id":"acme","user_id":"ada","workflow_name":"Plans","context_variables":{"stage":"draft","topic":"tea"}}}`))
		require.NoError(t, err)
		r := await(t, c, published.TurnID)
		require.Empty(t, r.Code, r.Content)
		got := object(t, object(t, r.Payload)["seen"])
		for _, name := range []string{"turn_idempotency_key", "agent_name", "workflow_name", "chat_id", "app_id"} {
			delete(got, name)
		}
		return got
	}
	want := map[string]any{
		"choice": nil, "stage": "draft", "missing": false, "mode": os.Getenv("PATH"), "hidden": "unseen", "menu": []any{"tea"}, "user_id": "ada", "topic": "tea",
	}
	requireJSON(t, want, seen("one"))
	want["choice"], want["stage"] = "gold", "review"
	requireJSON(t, want, seen("two"))
}

func requireJSON(t *testing.T, want, got any) {
	t.Helper()
	expected, err := json.Marshal(want)
	require.NoError(t, err)
	actual, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(expected), string(actual))
}
