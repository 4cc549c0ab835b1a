package python_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func TestToolsSeeOnlyTheEnvironmentTheyMay(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, value := range map[string]string{
		"ONETURN_NATS_PASSWORD": "x", "NATS_CREDS": "x", "AWS_SECRET_ACCESS_KEY": "x",
		"OPENAI_API_KEY": "allowed", "APP_ONE": "1", "APP_TWO": "2", "LC_ALL": "C.UTF-8",
	} {
		t.Setenv(name, value)
	}
	k := newKit(t, python.Options{Env: []string{"OPENAI_API_KEY", "APP_*", "*", "ONETURN_*", "NATS_CREDS"}},
		"WF/tools/t.py", "import os\ndef env(): return dict(os.environ)\n",
		"WF/.env", "# comment\nexport QUOTED=\"a \\\"b\\\" \\\\n\\nc\" # more\nPLAIN = some words # note\nSINGLE='# $kept \\n'\n"+
			"NATS_URL=own\nAPP_TWO=own\nnot a line\n=x\nEMPTY=\n")
	result, err := k.invoke(t.Context(), "env", `{}`)
	require.NoError(t, err)
	tree, err := events.Decode(result.Value)
	require.NoError(t, err)
	env, ok := tree.(map[string]any)
	require.True(t, ok)
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "allowed", "APP_ONE": "1", "APP_TWO": "own", "NATS_URL": "own", "LC_ALL": "C.UTF-8", "EMPTY": "",
		"QUOTED": "a \"b\" \\n\nc", "PLAIN": "some words", "SINGLE": "# $kept \\n",
	} {
		require.Equal(t, value, env[name], name)
	}
	for _, name := range []string{"ONETURN_NATS_PASSWORD", "NATS_CREDS", "AWS_SECRET_ACCESS_KEY", ""} {
		require.NotContains(t, env, name)
	}
}

func TestInterpreterThatCannotRunIsNamedAndTheToolNotEntered(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "python-old")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho 'needs more' >&2\nexit 7\n"), 0o700))
	for chosen, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "set with --python",
		script:                             "it ended (exit status 7) before it could run a tool: needs more",
	} {
		k := newKit(t, python.Options{Interpreter: chosen}, "WF/tools/t.py", "def f(): pass\n")
		text := k.fails("f", `{}`, events.CodeToolError)
		require.Contains(t, text, want)
		require.Contains(t, text, chosen)
		require.Contains(t, text, "the tool was not entered")
	}
}

func TestVirtualEnvironmentOfTheWorkflowIsPreferred(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", "import os\ndef mark(): return os.environ.get('MARK')\n")
	for folder, mark := range map[string]string{"WF": "workflow", ".": "root"} {
		name := filepath.Join(folder, ".venv", "bin", "python")
		k.write(name, "#!/bin/sh\nMARK="+mark+" exec python3 \"$@\"\n")
		require.NoError(t, os.Chmod(filepath.Join(k.root, name), 0o700))
	}
	require.Equal(t, `"workflow"`, k.value("mark", `{}`))
	require.NoError(t, os.RemoveAll(filepath.Join(k.root, "WF", ".venv")))
	k.pool.Renew("WF", nil)
	require.Equal(t, `"root"`, k.value("mark", `{}`))
}

func TestEnvFileThatCannotBeReadKeepsToolsFromStarting(t *testing.T) {
	t.Parallel()
	for want, prepare := range map[string]func(path string) error{
		"must be a regular file":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"over the limit of 65536":   func(path string) error { return os.WriteFile(path, make([]byte, 65537), 0o600) },
		".env: line 2 is not UTF-8": func(path string) error { return os.WriteFile(path, []byte("A=b\nB=\xe9\n"), 0o600) },
		".env: its values have over": func(path string) error {
			return os.WriteFile(path, []byte("A="+strings.Repeat("x", 5<<10)+strings.Repeat("\nA=${A}${A}", 9)), 0o600)
		},
	} {
		k := newKit(t, python.Options{}, "WF/tools/t.py", "def f(): pass\n")
		require.NoError(t, prepare(filepath.Join(k.root, "WF", ".env")))
		require.Contains(t, k.fails("f", `{}`, events.CodeToolError), want)
	}
}

func TestValuesOfSeveralLinesReachToolsAndNoLineOfThemTheLog(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import os
def names(): return [os.environ.get(n) for n in ("KEY", "URL", "AFTER")]
def show(): print(os.environ["KEY"]); print(os.environ["URL"])
`, "WF/.env", "\ufeffKEY=\"-----BEGIN-----\r\ncanary+1234\r\n-----END-----\"\r\nHOST = 'db.internal'\r\nURL=http://${HOST:-none}/${NONE:-x}\r\nnot canary-5678\r\nAFTER=1 # note\r\n")
	require.JSONEq(t, `["-----BEGIN-----\ncanary+1234\n-----END-----", "http://db.internal/x", "1"]`, k.value("names", `{}`))
	k.value("show", `{}`)
	require.Eventually(t, func() bool { return strings.Count(k.log.String(), "line=[secret]") == 4 }, 5*time.Second, 5*time.Millisecond)
	require.Contains(t, k.log.String(), `msg="invalid statements of .env ignored"`)
	require.Contains(t, k.log.String(), `line=6 problem="it is not an assignment"`)
	require.NotContains(t, k.log.String(), "canary")
}

func TestEnvFileIsReadInsideTheRootAlone(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", "import os\ndef token(): return os.environ.get('TOKEN')\n", "shared.env", "TOKEN=shared\n")
	outside := filepath.Join(filepath.Dir(k.root), "outside.env")
	require.NoError(t, os.WriteFile(outside, []byte("TOKEN=canary\n"), 0o600))
	path := filepath.Join(k.root, "WF", ".env")
	for _, target := range []string{outside, "../../outside.env", "/proc/self/environ"} {
		require.NoError(t, os.Symlink(target, path))
		text := k.fails("token", `{}`, events.CodeToolError)
		require.Contains(t, text, path+": its symbolic link must be relative and stay inside "+k.root)
		require.NotContains(t, text, "canary")
		require.NoError(t, os.Remove(path))
	}
	require.NoError(t, os.Symlink("../shared.env", path))
	require.Equal(t, `"shared"`, k.value("token", `{}`))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("../WF/none.env", path))
	k.pool.Renew("WF", nil)
	require.Equal(t, "null", k.value("token", `{}`), "a file that does not exist sets nothing")

	single := newKit(t, python.Options{Root: filepath.Join(k.root, "WF")})
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("../shared.env", path))
	require.Contains(t, single.fails("token", `{}`, events.CodeToolError), "must be relative and stay inside")
}

func TestStatementsThatSetNothingAreLoggedOncePerVersion(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", "import os\ndef leave(): os._exit(1)\n", "WF/.env", "nothing\n")
	logged := func(n int) {
		t.Helper()
		require.Equal(t, n, strings.Count(k.log.String(), "invalid statements of .env ignored"))
	}
	for range 3 {
		k.fails("leave", `{}`, events.CodeToolError)
	}
	logged(1)
	k.write("WF/.env", "A=b\nother\n")
	for range 2 {
		k.fails("leave", `{}`, events.CodeToolError)
	}
	logged(2)
	k.pool.Renew("WF", nil)
	k.fails("leave", `{}`, events.CodeToolError)
	logged(3)
}
