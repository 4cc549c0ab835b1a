package worker_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/internal/test/harness"
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

func TestWorkerThatWaitsForToolsLogsTheErrorsOfItsManifestsOnce(t *testing.T) {
	t.Parallel()
	s := server(t)
	root := t.TempDir()
	tries := filepath.Join(root, "tries")
	for name, text := range map[string]string{
		"Hello/oneturn.yaml":   "agents: {Greeter: }\ntools:\n  - {name: greet, agent: Greeter, file: greet.py}\n",
		"Hello/tools/greet.py": "def greet(name): pass\n",
		"bin/python":           "#!/bin/sh\necho >> " + tries + "\nexit 3\n",
	} {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o700))
	}
	log := &harness.Output{}
	start(t, s, oneturn.Config{
		Workflows: root, Python: oneturn.Python{Interpreter: filepath.Join(root, "bin", "python")},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(tries)
		return err == nil && len(data) >= 6 // each check tries the interpreter, and inspects the files
	}, 60*time.Second, 20*time.Millisecond)
	require.Equal(t, 1, strings.Count(log.String(), "no turns are taken until a tool can run"))
	require.NotContains(t, log.String(), "manifest error", "the caller has them in Bindings")
}
