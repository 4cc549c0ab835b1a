package python_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

// TestProcessesRunTheFilesThatWereChecked: whichever way a file is imported, and whatever the
// disk has by then, also a compiled form of what it had.
func TestProcessesRunTheFilesThatWereChecked(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{})
	code := func(version string) map[string][]byte {
		return map[string][]byte{
			"tools/__init__.py": []byte("PACKAGE = '" + version + "'\n"),
			"tools/near.py":     []byte("NEAR = '" + version + "'\n"),
			"sibling.py":        []byte("# -*- coding: latin-1 -*-\nSIBLING = '" + version + "\xe4'\n"),
			"tools/t.py": []byte(`
from . import PACKAGE
from .near import NEAR
import sibling
import near
from workflows.WF.tools.near import NEAR as ABSOLUTE
def versions(): return [PACKAGE, NEAR, near.NEAR, sibling.SIBLING, ABSOLUTE, "` + version + `"]
`),
		}
	}
	save := func(files map[string][]byte) {
		for name, data := range files {
			k.write("WF/"+name, string(data))
		}
	}
	save(code("1"))
	k.pool.Renew("WF", code("1"))
	require.JSONEq(t, `["1","1","1","1ä","1","1"]`, k.value("versions", `{}`))
	save(code("2"))
	k.pool.Renew("WF", code("1")) // a process that starts after an edit that was not taken
	require.JSONEq(t, `["1","1","1","1ä","1","1"]`, k.value("versions", `{}`))
	save(map[string][]byte{"tools/t.py": []byte("def versions(:\n"), "tools/near.py": nil})
	k.pool.Renew("WF", code("2"))
	require.JSONEq(t, `["2","2","2","2ä","2","2"]`, k.value("versions", `{}`))

	save(code("3"))
	k.write("WF/tools/added.py", "ADDED = 'from the disk'\ndef added(): return ADDED\n")
	require.JSONEq(t, `"from the disk"`, func() string {
		r, err := k.pool.Tool("WF", "added.py", "added").Invoke(t.Context(), newCall(t, "added", `{}`))
		require.NoError(t, err)
		return string(r.Value)
	}())
	k.pool.Renew("WF", nil)
	require.JSONEq(t, `["3","3","3","3ä","3","3"]`, k.value("versions", `{}`))
}

// TestCallThatWaitsForAProcessRunsTheVersionItWasMadeFor: a turn in flight keeps the code that
// its claim names, and nothing of an old version remains.
func TestCallThatWaitsForAProcessRunsTheVersionItWasMadeFor(t *testing.T) {
	t.Parallel()
	version := func(v string) map[string][]byte {
		return map[string][]byte{"tools/t.py": []byte(hostile + "\ndef version(): return " + v + "\n")}
	}
	k := newKit(t, python.Options{}, "WF/tools/t.py", "def version(): return 'of the disk'\n")
	k.pool.Renew("WF", version("1"))
	dir := t.TempDir() + string(filepath.Separator)
	entered, running := k.start(t.Context(), "sgate", `{"path":"`+dir+`"}`)
	<-entered
	result := make(chan string, 1)
	go func() {
		r, err := k.invoke(t.Context(), "version", `{}`)
		if err != nil {
			result <- err.Error()
			return
		}
		result <- string(r.Value)
	}()
	require.Eventually(t, func() bool { return k.pool.Stats().Waiting == 1 }, 10*time.Second, time.Millisecond)
	late := k.pool.Tool("WF", "t.py", "version")
	k.pool.Renew("WF", version("2"))
	require.Equal(t, "2", k.value("version", `{}`))
	require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
	require.NoError(t, <-running)
	require.Equal(t, "1", <-result)
	require.Eventually(t, func() bool { return k.pool.Stats().Children == 1 }, 10*time.Second, time.Millisecond)
	r, err := late.Invoke(t.Context(), newCall(t, "version", `{}`)) // no process of its version is left
	require.NoError(t, err)
	require.Equal(t, "1", string(r.Value))
	require.Eventually(t, func() bool { return k.pool.Stats().Children == 1 }, 10*time.Second, time.Millisecond)
}

// TestProcessKeepsWhatWasCheckedWhileItsFolderIsRenamed: also files that it had not imported by
// then. A process that cannot start without the folder names the fix.
func TestProcessKeepsWhatWasCheckedWhileItsFolderIsRenamed(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{})
	files := map[string][]byte{
		"tools/__init__.py":  []byte("PACKAGE = 'p'\n"),
		"tools/near.py":      []byte("NEAR = 'n'\n"),
		"tools/deep/more.py": []byte("MORE = 'm'\n"),
		"tools/early.py":     []byte("def early(): return 'e'\n"),
		"sibling.py":         []byte("SIBLING = 'b'\n"),
		"tools/t.py": []byte(`
from . import PACKAGE
from .near import NEAR
from workflows.WF.tools.deep.more import MORE
import sibling
def late(): return [PACKAGE, NEAR, MORE, sibling.SIBLING]
`),
	}
	for name, data := range files {
		k.write("WF/"+name, string(data))
	}
	k.pool.Renew("WF", files)
	call := func(file, function string) string {
		r, err := k.pool.Tool("WF", file, function).Invoke(t.Context(), newCall(t, function, `{}`))
		require.NoError(t, err)
		return string(r.Value)
	}
	require.JSONEq(t, `"e"`, call("early.py", "early"))
	require.NoError(t, os.Rename(filepath.Join(k.root, "WF"), filepath.Join(k.root, "Away")))
	require.JSONEq(t, `["p","n","m","b"]`, call("t.py", "late"))

	k.pool.Renew("WF", nil)
	_, err := k.pool.Tool("WF", "t.py", "late").Invoke(t.Context(), newCall(t, "late", `{}`))
	require.ErrorContains(t, err, "restore it")
}
