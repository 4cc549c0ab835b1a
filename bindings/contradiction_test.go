package bindings_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
)

// A model, the schemas of a tool and of its guards are checked against themselves: what can
// never be met or used is an error with its line, and the reason in the error of a turn.
func TestManifestIsCheckedAgainstItself(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "W/tools/t.py"), "def order(express): return express\n")
	write(t, filepath.Join(root, "W/oneturn.yaml"), `
agents: {order: {model: M}, other: {model: N}, input: {model: N}, output: {model: N}, guarded: {model: N}}
models:
  M:
    type: object
    properties:
      express: {type: boolean, default: no}
      size: {type: string, enum: [s, l], default: m}
  N:
    type: object
    properties:
      express: {type: boolean, default: "TRUE"}
      kind: {type: string, enum: [a, 5]}
tools:
  - {name: order, agent: order, file: t.py}
  - {name: other, function: order, agent: other, file: t.py}
  - {name: input, function: order, agent: input, file: t.py, input: {type: object, properties: {n: {type: integer, minimum: 5, maximum: 4}}}}
  - {name: output, function: order, agent: output, file: t.py, output: {type: integer, enum: [x]}}
  - {name: guarded, function: order, agent: guarded, file: t.py, guards: [{on: output, schema: {const: 1, type: string}}]}
`)
	set := load(t, root)
	type finding struct {
		severity diag.Severity
		line     int
	}
	found := map[finding]bool{}
	for _, d := range set.Diagnostics() {
		if d.Code == "bad_model" || d.Code == "bad_schema" || d.Code == "bad_guard" {
			found[finding{d.Severity, d.Line}] = true
		}
	}
	require.Equal(t, map[finding]bool{
		{"error", 7}: true, {"error", 8}: true, {"warning", 13}: true, {"error", 17}: true, {"error", 18}: true, {"error", 19}: true,
	}, found)
	_, err := set.Resolve("W", "order", "M")
	require.ErrorContains(t, err, `W/oneturn.yaml:7: the default "no" does not fit: expected boolean, got string`)
	require.ErrorContains(t, err, "write true or false")
	b, err := set.Resolve("W", "other", "N")
	require.NoError(t, err)
	out, violations := b.Model.Check(map[string]any{})
	require.Empty(t, violations)
	require.Equal(t, map[string]any{"express": true}, out)
}

func TestAllowedValuesCanBeRelaxedAsInMozaiksAI(t *testing.T) {
	t.Parallel()
	for compat, violations := range map[string]int{"": 1, "compat: {allowed_values: true}\n": 0, "compat: {allowed_values: false}\n": 1} {
		root := t.TempDir()
		write(t, filepath.Join(root, "W/tools/t.py"), "def run(f): return f\n")
		write(t, filepath.Join(root, "W/orchestrator.yaml"), compat+"workflow_name: W\n")
		write(t, filepath.Join(root, "W/tools.yaml"), "tools: [{agent: A, file: t.py, function: run, tool_type: UI_Tool}]\n")
		write(t, filepath.Join(root, "W/structured_outputs.yaml"), "models: {M: {type: model, fields: {f: {type: str, allowed_values: [a]}}}}\nregistry: {A: M}\n")
		set := load(t, root)
		b, err := set.Resolve("W", "A", "M")
		require.NoError(t, err)
		_, found := b.Model.Check(map[string]any{"f": "b"})
		require.Len(t, found, violations, compat)
	}
}
