package oneturn_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
)

func TestWorkerTakesNoTurnsUntilAToolCanRun(t *testing.T) {
	t.Parallel()
	s := server(t)
	root := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
	}
	write("Hello/oneturn.yaml", "agents:\n  Greeter: {model: Greeting}\nmodels:\n  Greeting: {type: object, properties: {name: {type: string}}}\n"+
		"tools:\n  - {name: greet, agent: Greeter, file: greet.py}\n", 0o600)
	write("Hello/tools/greet.py", "def greet(name):\n    return {'status': 'success', 'message': f'Hello, {name}!'}\n", 0o600)
	python := filepath.Join(root, "bin", "python")
	w := start(t, s, oneturn.Config{Workflows: root, Python: oneturn.Python{Interpreter: python}})
	reason := func() string { return fmt.Sprint(w.Ready()) }
	require.Eventually(t, func() bool { return strings.Contains(reason(), "none of the tools can run") }, 30*time.Second, 5*time.Millisecond)
	require.Contains(t, reason(), python)
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	publish(t, c, one)
	write("bin/python", "#!/bin/sh\nexec python3 \"$@\"\n", 0o700)
	require.True(t, await(t, c, one.TurnID).Success)
	require.NoError(t, w.Ready())
}
