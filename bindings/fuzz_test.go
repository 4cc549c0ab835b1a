package bindings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
)

// FuzzManifest loads whatever bytes as a manifest of either format: no panic, and the workflow
// stays known.
func FuzzManifest(f *testing.F) {
	f.Add("oneturn.yaml", []byte(fullManifest))
	f.Add("oneturn.yaml", []byte(blocksManifest))
	for name, rest := range validTools() {
		f.Add("oneturn.yaml", []byte("servers: {s: {command: run}}\ntools: [{name: "+name+", agent: A, "+rest+"}]"))
	}
	for _, rest := range invalidTools() {
		f.Add("tools.yaml", []byte("tools: [{name: t, agent: A, auto_invoke: yes, "+rest+"}]"))
		f.Add("tools.oneturn.yaml", []byte("tools: [{name: t, "+rest+"}]"))
	}
	f.Add("oneturn.json", []byte(`{"tools":[{"name":"t","agent":"A","kind":"go"}]}`))
	f.Add("tools.yaml", []byte("a: &a [*a]\n<<: {b: 1}\n? [x]\n: !!python/none\n"))
	for _, name := range []string{"agents", "tools", "structured_outputs"} {
		for _, ext := range []string{".json", ".yaml"} {
			data, err := os.ReadFile(filepath.Join("..", "testdata", "mozaiks", "workflows", "WF", name+ext))
			require.NoError(f, err)
			f.Add(name+ext, data)
		}
	}
	f.Add("context_variables.yaml", []byte("definitions: {v: {source: {type: state, triggers: [{type: agent_text, agent: A, match: {regex: x}}]}}}"))
	f.Add("handoffs.yaml", []byte(`handoffs: {decider: x, handoff_rules: [{source_agent: A, target_agent: B, condition: "${x} == 1"}, 5]}`))
	f.Add("handoffs.json", []byte(`{"A": ["B", {"to": "user", "trigger": "NEXT"}]}`))
	known := map[string]bool{
		"handoffs.yaml": true, "handoffs.json": true,
		"oneturn.yaml": true, "oneturn.json": true, "tools.yaml": true, "tools.json": true, "agents.yaml": true, "agents.json": true,
		"structured_outputs.yaml": true, "structured_outputs.json": true, "context_variables.yaml": true, "tools.oneturn.yaml": true,
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if !known[name] {
			return
		}
		dir := filepath.Join(t.TempDir(), "W")
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "tools"), 0o750))
		if name == "tools.oneturn.yaml" {
			name = filepath.Join("..", name)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		set, err := bindings.Load(t.Context(), bindings.Options{Root: filepath.Dir(dir)})
		require.NoError(t, err)
		require.Equal(t, []string{"W"}, set.Workflows())
		for _, b := range set.Bindings() {
			found, err := set.Resolve("W", b.Agent, b.ModelName)
			require.NoError(t, err)
			require.Same(t, b, found)
			require.Equal(t, b.Target == nil, b.Kind == bindings.KindGo || b.Kind == bindings.KindPython)
		}
		for _, b := range append(set.Shared(), set.Tools("W")...) {
			found, err := set.Tool(b.Workflow, b.Tool)
			require.NoError(t, err)
			require.Same(t, b, found)
		}
	})
}
