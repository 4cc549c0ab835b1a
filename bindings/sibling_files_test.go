package bindings_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileOfAnotherFolderOfTheWorkflowsFolderIsATool(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "workflows")
	write(t, filepath.Join(root, "_shared/t.py"), "def up(x): return x\n")
	write(t, filepath.Join(root, "../outside.py"), "def up(x): return x\n")
	const manifest = `
agents: {up: {model: M}, far: {model: M}, gone: {model: M}}
models: {M: {type: object, properties: {x: {}}}}
tools:
  - {name: up, agent: up, file: ../_shared/t.py}
  - {name: far, function: up, agent: far, file: ../../outside.py}
  - {name: gone, function: up, agent: gone, file: ../_shared/gone.py}
`
	write(t, filepath.Join(root, "W/oneturn.yaml"), manifest)
	set := load(t, root)
	b, err := set.Resolve("W", "up", "M")
	require.NoError(t, err)
	require.Equal(t, "_shared/t.py", b.File)
	require.False(t, b.SignatureUnknown)
	_, err = set.Resolve("W", "far", "M")
	require.ErrorContains(t, err, `file "../../outside.py" must be inside the workflows folder`)
	_, err = set.Resolve("W", "gone", "M")
	require.ErrorContains(t, err, `file "../_shared/gone.py" not found; create _shared/gone.py in the workflows folder`)

	digest := set.WorkflowDigest("W")
	write(t, filepath.Join(root, "_shared/t.py"), "def up(x, y=1): return x\n")
	require.NotEqual(t, digest, load(t, root).WorkflowDigest("W"), "a shared file is part of the version")
}

func TestNamedLiteralsAndUnionsAreTypesOfFields(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "W/tools/d.py"), "def design(surface, note=None, many=None): return surface\n")
	write(t, filepath.Join(root, "W/agents.yaml"), "agents: [{name: Designer, auto_tool_mode: true}]\n")
	write(t, filepath.Join(root, "W/tools.yaml"), "tools: [{agent: Designer, file: d.py, function: design, tool_type: UI_Tool}]\n")
	write(t, filepath.Join(root, "W/structured_outputs.yaml"), `
structured_outputs:
  models:
    Surface: {type: literal, values: [card, table]}
    Note: {type: union, variants: [str, "null"]}
    Design:
      type: model
      fields:
        surface: {type: Surface, description: where it is shown}
        note: {type: Note, default: null}
        many: {type: list, items: Surface, default: []}
        maybe: {type: optional_list, items: Surface}
  registry: {Designer: Design}
`)
	set := load(t, root)
	require.Empty(t, set.Diagnostics())
	b, err := set.Resolve("W", "Designer", "Design")
	require.NoError(t, err)
	_, violations := b.Model.Check(map[string]any{"surface": "card", "many": []any{"table"}, "note": "n"})
	require.Empty(t, violations)
	_, violations = b.Model.Check(map[string]any{"surface": "chart", "many": []any{"tables"}})
	require.Len(t, violations, 2)
	require.Equal(t, `/surface: expected one of "card", "table", got another value (string).`, violations[0].String())
	require.Contains(t, string(b.Model.JSONSchema()), `"card"`)
}
