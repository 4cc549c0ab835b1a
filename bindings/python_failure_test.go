package bindings_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

func TestInterpreterThatDoesNotRunIsAnErrorOnlyWhereAToolNeedsIt(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, string, map[string][]byte) (map[string]bindings.PyFile, error) {
		return nil, errors.New("no Python found")
	}
	for tool, severity := range map[string]diag.Severity{
		"{name: f, agent: A, file: t.py}": diag.SeverityError,
		"{name: f, agent: A, kind: go}":   diag.SeverityWarning,
	} {
		root := t.TempDir()
		write(t, filepath.Join(root, "W", "oneturn.yaml"), "agents: {A: }\ntools: ["+tool+"]\n")
		write(t, filepath.Join(root, "W", "tools", "t.py"), "def f(): pass\n")
		set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Inspect: broken})
		require.NoError(t, err)
		require.Contains(t, lines(set, severity)[0], "no Python found [not_inspected]")
	}
}

func TestFixOfAnInterpreterIsStatedOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, filepath.Join(root, "W", "oneturn.yaml"), "agents: {A: }\ntools: [{name: f, agent: A, file: t.py}]\n")
	write(t, filepath.Join(root, "W", "tools", "t.py"), "def f(): pass\n")
	set, err := bindings.Load(t.Context(), bindings.Options{Root: root, Inspect: func(context.Context, string, map[string][]byte) (map[string]bindings.PyFile, error) {
		return nil, fmt.Errorf("inspect: %w", diag.Errorf("", "", "how", "what"))
	}})
	require.NoError(t, err)
	require.Equal(t, "error: what [not_inspected]: how", lines(set, diag.SeverityError)[0])
}
