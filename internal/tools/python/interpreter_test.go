package python_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

// relative returns a path as seen from the folder in which the tests run.
func relative(t *testing.T, path string) string {
	t.Helper()
	here, err := os.Getwd()
	require.NoError(t, err)
	short, err := filepath.Rel(here, path)
	require.NoError(t, err)
	return short
}

// venv writes a stand-in for a virtual environment whose interpreter sets MARK.
func (k *kit) venv(folder, mark string) string {
	k.tb.Helper()
	name := filepath.Join(folder, "bin", "python")
	k.write(name, "#!/bin/sh\nMARK="+mark+" exec python3 \"$@\"\n")
	require.NoError(k.tb, os.Chmod(filepath.Join(k.root, name), 0o700))
	return filepath.Join(k.root, name)
}

func TestRelativeInterpreterAndFolderWorkForEveryUse(t *testing.T) { //nolint:paralleltest // sets the environment
	k := newKit(t, python.Options{}, "WF/tools/t.py", "import os\ndef mark(): return os.environ.get('MARK')\n")
	chosen := relative(t, k.venv("../chosen", "chosen"))
	require.False(t, filepath.IsAbs(chosen))
	activated := relative(t, filepath.Dir(filepath.Dir(k.venv("../activated", "activated"))))

	for _, interpreter := range []string{chosen, ""} {
		t.Setenv("VIRTUAL_ENV", activated)
		require.NoError(t, python.Probe(t.Context(), interpreter, relative(t, k.root)))
		missing, err := python.Missing(t.Context(), interpreter, relative(t, k.root), relative(t, filepath.Join(k.root, "WF")), []string{"json", "no_such_module"})
		require.NoError(t, err)
		require.Equal(t, []string{"no_such_module"}, missing)
		found, err := python.Inspect(t.Context(), interpreter, relative(t, k.root), map[string][]byte{"WF/tools/t.py": nil})
		require.NoError(t, err)
		require.Contains(t, found["WF/tools/t.py"].Functions, "mark")
		pool := newKit(t, python.Options{Root: relative(t, k.root), Interpreter: interpreter})
		want := map[string]string{chosen: `"chosen"`, "": `"activated"`}[interpreter]
		require.Equal(t, want, pool.value("mark", `{}`))
	}

	k.venv(".venv", "folder")
	missing, err := python.Missing(t.Context(), "", relative(t, k.root), relative(t, filepath.Join(k.root, "WF")), []string{"no_such_module"})
	require.NoError(t, err)
	require.Equal(t, []string{"no_such_module"}, missing)
}

func TestBrokenVirtualEnvironmentIsAnErrorThatNamesIt(t *testing.T) {
	t.Setenv("VIRTUAL_ENV", "")
	for _, folder := range []string{"", "WF"} {
		k := newKit(t, python.Options{}, "WF/tools/t.py", "def one(): return 1\n")
		bin := filepath.Join(k.root, folder, ".venv", "bin")
		require.NoError(t, os.MkdirAll(bin, 0o700))
		missing := func() error {
			_, err := python.Missing(t.Context(), "", k.root, filepath.Join(k.root, "WF"), []string{"no_such_module"})
			return err
		}
		require.NoError(t, missing(), "a folder without an interpreter is not a broken environment")
		require.NoError(t, os.Symlink("/nonexistent/python", filepath.Join(bin, "python")))
		_, called := k.invoke(t.Context(), "one", `{}`)
		for _, err := range []error{missing(), called} {
			require.ErrorContains(t, err, filepath.Join(bin, "python"))
			require.ErrorContains(t, err, "python3 -m venv")
		}
	}
}

func TestErrorsOfAnInterpreterStateTheCauseOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("VIRTUAL_ENV", "")
	err := python.Probe(t.Context(), "", t.TempDir())
	require.ErrorContains(t, err, "no Python found")
	require.NotContains(t, err.Error(), "executable file not found")
	require.Equal(t, 1, strings.Count(err.Error(), "ython found"))

	silent := filepath.Join(t.TempDir(), "python-silent")
	require.NoError(t, os.WriteFile(silent, []byte("#!/bin/sh\nexit 3\n"), 0o700))
	err = python.Probe(t.Context(), silent, t.TempDir())
	require.ErrorContains(t, err, "exit status 3")
	require.Equal(t, 1, strings.Count(err.Error(), silent))

	absent := filepath.Join(t.TempDir(), "absent")
	err = python.Probe(t.Context(), absent, t.TempDir())
	require.ErrorContains(t, err, "set with --python")
	require.Equal(t, 1, strings.Count(err.Error(), absent))
}

// TestOnlyFoldersOfWorkflowsAreSearchedForAnInterpreter: a .venv above them belongs to another project.
func TestOnlyFoldersOfWorkflowsAreSearchedForAnInterpreter(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("VIRTUAL_ENV", "")
	k := newKit(t, python.Options{}, "WF/tools/t.py", "def one(): return 1\n", "WF/tools.yaml", "tools: []\n")
	above, flow := filepath.Dir(k.root), filepath.Join(k.root, "WF")
	foreign := filepath.Join(above, ".venv", "bin", "python")
	require.NoError(t, os.MkdirAll(filepath.Dir(foreign), 0o700))
	require.NoError(t, os.WriteFile(foreign, []byte("#!/bin/sh\ntouch "+above+"/ran\nexit 3\n"), 0o700))
	missing := func(folders ...string) string {
		return "no Python found in " + strings.Join(folders, "/.venv, ") + "/.venv, $VIRTUAL_ENV or $PATH; install Python 3.9 or newer or set --python"
	}
	_, err := python.Inspect(t.Context(), "", k.root, map[string][]byte{"t.py": nil})
	require.EqualError(t, err, "inspect Python files of "+k.root+": "+missing(k.root))
	require.ErrorContains(t, python.Probe(t.Context(), "", k.root), missing(k.root))
	require.ErrorContains(t, python.ProbeWorkflow(t.Context(), "", k.root, "WF"), missing(flow, k.root))
	require.ErrorContains(t, python.ProbeWorkflow(t.Context(), "", flow, "."), missing(flow))
	_, err = k.invoke(t.Context(), "one", `{}`)
	require.ErrorContains(t, err, missing(flow, k.root))
	single := newKit(t, python.Options{Root: flow}) // the folder is the workflow
	_, err = single.invoke(t.Context(), "one", `{}`)
	require.ErrorContains(t, err, missing(flow))
	require.NoFileExists(t, filepath.Join(above, "ran"))
}
