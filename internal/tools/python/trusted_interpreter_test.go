package python_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

// trap puts an interpreter into a folder that leaves a mark when it runs, and returns that mark.
func trap(t *testing.T, venv string) (mark string) {
	t.Helper()
	mark = filepath.Join(t.TempDir(), "ran")
	require.NoError(t, os.MkdirAll(filepath.Join(venv, "bin"), 0o700))
	for _, name := range []string{"python", "python3"} {
		script := "#!/bin/sh\ntouch " + mark + "\nexec python3 \"$@\"\n"
		require.NoError(t, os.WriteFile(filepath.Join(venv, "bin", name), []byte(script), 0o700))
	}
	return mark
}

func TestInspectionNeverRunsAnInterpreterOfTheFolder(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "W")
	marks := []string{trap(t, filepath.Join(root, ".venv")), trap(t, filepath.Join(folder, ".venv"))}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(root, link))
	path := os.Getenv("PATH")
	for name, env := range map[string][2]string{
		"not activated":        {"", path},
		"activated":            {filepath.Join(root, ".venv"), filepath.Join(root, ".venv", "bin") + string(filepath.ListSeparator) + path},
		"activated by a link":  {filepath.Join(link, ".venv"), filepath.Join(link, ".venv", "bin") + string(filepath.ListSeparator) + path},
		"a folder of its PATH": {"", filepath.Join(folder, ".venv", "bin") + string(filepath.ListSeparator) + path},
	} {
		t.Setenv("VIRTUAL_ENV", env[0])
		t.Setenv("PATH", env[1])
		for _, dir := range []string{root, link} {
			interpreter, err := python.TrustedInterpreter(dir)
			require.NoError(t, err, name)
			missing, err := python.Missing(t.Context(), "", dir, filepath.Join(dir, "W"), []string{"json", "no_such_module"})
			require.NoError(t, err, name)
			require.Equal(t, []string{"no_such_module"}, missing)
			_, err = python.Inspect(t.Context(), interpreter, dir, map[string][]byte{"t.py": []byte("def f(): pass\n")})
			require.NoError(t, err, name)
		}
	}
	for _, mark := range marks {
		require.NoFileExists(t, mark)
	}

	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("PATH", filepath.Join(root, ".venv", "bin"))
	_, err := python.TrustedInterpreter(root)
	require.ErrorContains(t, err, "set --python")
}

// The .venv of a folder is looked at, not run: not its interpreter, not its .pth files.
func TestModulesOfAFolderAreFoundByTheirFiles(t *testing.T) {
	t.Setenv("VIRTUAL_ENV", "")
	root := t.TempDir()
	folder := filepath.Join(root, "W")
	mark := trap(t, filepath.Join(folder, ".venv"))
	site := filepath.Join(folder, ".venv", "lib", "python3.11", "site-packages")
	extra := t.TempDir()
	for name, text := range map[string]string{
		filepath.Join(site, "package", "__init__.py"):          "open(" + "'" + mark + "', 'w')\n",
		filepath.Join(site, "single.py"):                       "",
		filepath.Join(site, "compiled.cpython-311-x.so"):       "",
		filepath.Join(site, "namespace", "part", "m.py"):       "",
		filepath.Join(site, "paths.pth"):                       extra + "\nimport os; open('" + mark + "', 'w')\n",
		filepath.Join(extra, "added.py"):                       "",
		filepath.Join(site, "ed-1.dist-info", "top_level.txt"): "editable_by_name\n",
		filepath.Join(site, "__editable___ed_1_finder.py"):     "MAPPING: dict[str, str] = {'editable_by_map': '/x', 'deep.er': '/y'}\n",
		filepath.Join(site, "sitecustomize.py"):                "open('" + mark + "', 'w')\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	wanted := []string{"package.sub", "single", "namespace", "added", "editable_by_name", "editable_by_map", "deep", "json", "zoneinfo", "absent", "sitepackages"}
	missing, err := python.Missing(t.Context(), "", root, folder, wanted)
	require.NoError(t, err)
	require.Equal(t, []string{"absent", "sitepackages"}, missing)
	require.NoFileExists(t, mark)

	missing, err = python.Missing(t.Context(), "", root, filepath.Join(root, "Other"), []string{"package", "json"})
	require.NoError(t, err)
	require.Equal(t, []string{"package"}, missing, "another folder does not have that .venv")
}

func TestModulesOfANamedEnvironmentAreFound(t *testing.T) {
	t.Parallel()
	program, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable)").Output()
	require.NoError(t, err)
	root, venv := t.TempDir(), t.TempDir()
	interpreter := filepath.Join(venv, "bin", "python")
	require.NoError(t, os.MkdirAll(filepath.Dir(interpreter), 0o700))
	require.NoError(t, os.Symlink(strings.TrimSpace(string(program)), interpreter))
	require.NoError(t, os.WriteFile(filepath.Join(venv, "pyvenv.cfg"), []byte("home = /usr/bin\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(venv, "lib", "python3.11", "site-packages", "installed"), 0o700))
	missing, err := python.Missing(t.Context(), interpreter, root, root, []string{"installed", "absent"})
	require.NoError(t, err)
	require.Equal(t, []string{"absent"}, missing)
}
