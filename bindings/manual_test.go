package bindings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
)

func TestAgentWhoseOnlyToolIsNeverCalledAutomaticallyIsReported(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"W/agents.yaml": "agents:\n  A: {auto_tool_mode: true}\n",
		"W/tools.yaml":  "tools:\n- {agent: A, file: t.py, function: f, tool_type: Agent_Tool}\n",
		"W/tools/t.py":  "def f(x): return x\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root})
	require.NoError(t, err)
	require.Empty(t, set.Bindings())
	require.Len(t, set.Diagnostics(), 1)
	d := set.Diagnostics()[0]
	require.Equal(t, "auto_agent_without_tool", d.Code)
	require.Equal(t, 2, d.Line)
	require.Contains(t, d.Fix, "auto_invoke")
}
