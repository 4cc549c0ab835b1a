package python_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

const blocking = `
import asyncio, os, time
async def good(seconds): await asyncio.sleep(seconds); return os.getpid()
async def bad(path):
    open(path, "w").close()
    while not os.path.exists(path + "go"): time.sleep(0.01)
    return os.getpid()
async def work(path, block):
    if not path: return os.getpid()
    open(path, "w").close()
    while not os.path.exists(path + "go"):
        if block: time.sleep(0.01)
        else: await asyncio.sleep(0.01)
    return os.getpid()
async def nested(path): return await asyncio.gather(bad(path))
`

// TestAsyncFunctionsHaveProcessesApartWhileThereAreSome: one that blocks delays no other calls.
func TestAsyncFunctionsHaveProcessesApartWhileThereAreSome(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Size: 2}, "WF/tools/t.py", blocking)
	path := filepath.Join(t.TempDir(), "bad")
	k.value("good", `{"seconds":0}`)
	entered, first := k.start(t.Context(), "good", `{"seconds":0.1}`)
	<-entered
	_, bad := k.start(t.Context(), "bad", `{"path":"`+path+`"}`)
	waitForFiles(t, path, 1)
	require.NoError(t, <-first)
	require.NotEmpty(t, k.value("good", `{"seconds":0}`))
	require.Empty(t, bad)
	require.NoError(t, os.WriteFile(path+"go", nil, 0o600))
	require.NoError(t, <-bad)
}

// TestCallsGoToOtherProcessesWhileOneBlocksItsLoop: new calls, calls that were sent to it and not
// begun; and from then on calls of the function that blocks have a process for themselves.
func TestCallsGoToOtherProcessesWhileOneBlocksItsLoop(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Size: 3}, "WF/tools/t.py", blocking)
	warm := k.value("work", `{"path":"","block":false}`)
	path := filepath.Join(t.TempDir(), "blocks")
	entered, blocks := k.start(t.Context(), "work", `{"path":"`+path+`","block":true}`)
	<-entered
	waitForFiles(t, path, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	result, err := k.invoke(ctx, "work", `{"path":"","block":false}`) // the function was harmless so far
	require.NoError(t, err)
	require.NotEqual(t, warm, string(result.Value))
	require.Empty(t, blocks)
	require.Contains(t, k.log.String(), "a tool blocks the event loop of its Python process")
	_, warning, _ := strings.Cut(k.log.String(), "a tool blocks")
	require.Contains(t, warning, "tool=work chat=c1 turn=turn-1")
	require.Contains(t, warning, `t.py:`)

	other := filepath.Join(t.TempDir(), "waits")
	_, waits := k.start(t.Context(), "work", `{"path":"`+other+`","block":false}`)
	waitForFiles(t, other, 1)
	alone := k.value("work", `{"path":"","block":false}`)
	require.NotEqual(t, string(result.Value), alone)
	require.NotEqual(t, warm, alone)
	for _, p := range []string{path, other} {
		require.NoError(t, os.WriteFile(p+"go", nil, 0o600))
	}
	require.NoError(t, <-blocks)
	require.NoError(t, <-waits)
	require.Equal(t, uint64(3), k.pool.Stats().Started)
}

// TestTaskThatBlocksIsNamedByItsCallOrByItsPlace also in the first call of its function.
func TestTaskThatBlocksIsNamedByItsCallOrByItsPlace(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", blocking)
	k.value("good", `{"seconds":0}`)
	path := filepath.Join(t.TempDir(), "blocks")
	_, blocks := k.start(t.Context(), "nested", `{"path":"`+path+`"}`)
	require.Eventually(t, func() bool { return strings.Contains(k.log.String(), "a tool blocks") }, 30*time.Second, 10*time.Millisecond)
	require.NoError(t, os.WriteFile(path+"go", nil, 0o600))
	require.NoError(t, <-blocks)
	require.Regexp(t, `a tool blocks the event loop.* at="[^"]*t.py:\d+ in bad"`, k.log.String())
	require.NotEmpty(t, k.value("good", `{"seconds":0}`))
}
