package python_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func TestToolThatClosesItsStreamsStillGetsItsReply(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close()", "buffer.close()", "detach()"} {
		k := newKit(t, python.Options{}, "WF/tools/t.py", `
import sys
async def shut():
    sys.stderr.`+how+`
    sys.stdout.`+how+`
    raise RuntimeError("shut")
def again(): raise RuntimeError("again")
def fine(): return 1
`)
		require.Equal(t, "shut", k.fails("shut", `{}`, events.CodeToolError))
		require.Equal(t, "again", k.fails("again", `{}`, events.CodeToolError))
		require.Equal(t, "1", k.value("fine", `{}`))
	}
}

func TestForkedCopyOfAToolDoesNotAnswer(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, os, time
def both(path):
    child = os.fork()
    if child == 0: return "copy"
    _, status = os.waitpid(child, 0)
    open(path, "a").write(str(status))
    return "original"
async def aboth(path):
    child = os.fork()
    if child:
        while os.waitpid(child, os.WNOHANG) == (0, 0): await asyncio.sleep(0.005)
        return "original"
    return "copy"
async def beat(path):
    for _ in range(20):
        await asyncio.sleep(0.005)
        with open(path, "a") as f: f.write(str(os.getpid()) + "\n")
`)
	dir := t.TempDir()
	require.Equal(t, `"original"`, k.value("both", `{"path":"`+filepath.Join(dir, "status")+`"}`))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	require.NoError(t, err)
	require.Equal(t, "0", string(status))
	k.value("beat", `{"path":"`+filepath.Join(dir, "warm")+`"}`)
	_, beat := k.start(t.Context(), "beat", `{"path":"`+filepath.Join(dir, "beat")+`"}`)
	require.Equal(t, `"original"`, k.value("aboth", `{"path":""}`))
	require.NoError(t, <-beat)
	lines, err := os.ReadFile(filepath.Join(dir, "beat"))
	require.NoError(t, err)
	require.Equal(t, 20, strings.Count(string(lines), "\n"), "the copy runs no neighbour")
}
