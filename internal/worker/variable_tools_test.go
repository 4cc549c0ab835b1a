package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
)

// shopsByTool is a workflow with variables that a Python tool reads.
var shopsByTool = map[string]string{
	"oneturn.yaml": `
agents: {Planner: {model: Plan}}
models: {Plan: {type: object, required: [notes], properties: {notes: {type: string}}}}
tools:
- {name: plan, agent: Planner, file: plan.py, effect: idempotent}
- {name: find, file: plan.py, auto: false, effect: none}
context:
  notes: {source: {type: static, value: NOTES}}
  shop: {source: {type: data_reference, tool: find, collection: shops, query_template: {app_id: "{{runtime.app_id}}"}}}
  orders: {default: 7, type: integer, source: {type: data_reference, tool: find, collection: orders, query_template: {shop: "{{var.shop.name}}"}}}
  broken: {default: 7, source: {type: data_reference, tool: find, collection: gone}}
`,
	"tools/plan.py": `
async def plan(notes, context_variables):
    seen = context_variables.to_dict()
    return {"seen": {name: seen[name] for name in ("shop", "orders", "broken")}}
async def find(collection, context_variables, query_template=None):
    with open(context_variables.get("notes"), "a") as f: f.write(collection + "\n")
    return {"shops": {"name": "tea"}, "orders": len((query_template or {}).get("shop") or "")}[collection]
`,
}

func TestPythonToolReadsVariablesOnceForAChat(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	notes := filepath.Join(root, "notes")
	files := map[string]string{"tools/plan.py": shopsByTool["tools/plan.py"], "oneturn.yaml": strings.Replace(shopsByTool["oneturn.yaml"], "NOTES", notes, 1)}
	writeFiles(t, filepath.Join(root, "workflows", "Shops"), files)
	s := server(t)
	start(t, s, oneturn.Config{Workflows: filepath.Join(root, "workflows")})
	c := client(t, s)
	for _, key := range []string{"one", "two"} {
		turn := &oneturn.Turn{
			TurnID: oneturn.TurnID{App: "acme", Chat: "c", Turn: key}, Workflow: "Shops", Agent: "Planner", Model: "Plan", Data: map[string]any{"notes": notes},
		}
		r, err := c.Do(t.Context(), turn)
		require.NoError(t, err)
		require.Empty(t, r.Code, r.Content)
		requireJSON(t, map[string]any{"shop": map[string]any{"name": "tea"}, "orders": 3, "broken": nil}, object(t, r.Payload)["seen"])
	}
	read, err := os.ReadFile(notes)
	require.NoError(t, err)
	require.Equal(t, "shops\norders\ngone\n", string(read))
}
