package python_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// start runs t.py's function in the background. entered is closed when the pool reports that the function is entered, ended gets how the call ends.
func (k *kit) start(ctx context.Context, function, args string) (entered chan struct{}, ended chan error) {
	k.tb.Helper()
	call := newCall(k.tb, function, args)
	entered, ended = make(chan struct{}), make(chan error, 1)
	call.Entered = sync.OnceFunc(func() { close(entered) })
	go func() {
		_, err := k.pool.Tool("WF", "t.py", function).Invoke(ctx, call)
		ended <- err
	}()
	return entered, ended
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestPythonToolsQueue(t *testing.T) {
	t.Parallel()
	require.True(t, tools.Queues(python.NewPool(python.Options{Root: t.TempDir()}).Tool("WF", "t.py", "f")))
}

func TestAsyncCallsOfABurstShareAProcessFromTheFirstOn(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
	for range 2 { // cold, and after an edit
		const burst = 20
		dir := t.TempDir() + string(filepath.Separator)
		ends := make([]chan error, burst)
		for i := range ends {
			_, ends[i] = k.start(t.Context(), "gate", `{"path":"`+dir+`"}`)
		}
		waitForFiles(t, dir+"*", burst) // each waits for all of them
		require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
		for _, end := range ends {
			require.NoError(t, <-end)
		}
		k.pool.Renew("WF", nil)
	}
}

func TestCallIsEnteredWhenItsWaitIsOver(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
	dir := t.TempDir() + string(filepath.Separator)
	entered, first := k.start(t.Context(), "sgate", `{"path":"`+dir+`"}`)
	<-entered
	waiting, second := k.start(t.Context(), "pid", `{}`)
	require.Eventually(t, func() bool { return k.pool.Stats().Waiting == 1 }, 5*time.Second, time.Millisecond)
	require.False(t, isClosed(waiting))
	require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
	require.NoError(t, <-first)
	require.NoError(t, <-second)
	require.True(t, isClosed(waiting))
}

// slowImport reports that it is imported and waits for a file.
const slowImport = `
import os, time
flag = os.path.join(os.path.dirname(__file__), "flag")
open(flag + str(os.getpid()), "w").close()
while not os.path.exists(flag + "open"): time.sleep(0.005)
def f(): return "ran"
`

func TestCallCancelledDuringItsImportWasNotEntered(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Grace: 50 * time.Millisecond}, "WF/tools/t.py", slowImport)
	flag := filepath.Join(k.root, "WF", "tools", "flag")
	ctx, cancel := context.WithCancel(t.Context())
	entered, ended := k.start(ctx, "f", `{}`)
	waitForFiles(t, flag+"*", 1)
	cancel()
	require.Contains(t, message(t, <-ended, events.CodeCancelled), "cancelled before f began; the tool was not entered")
	require.False(t, isClosed(entered))
	require.NoError(t, os.WriteFile(flag+"open", nil, 0o600))
	require.Equal(t, `"ran"`, k.value("f", `{}`))
}

func TestImportThatHangsEndsItsCall(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{LoadTimeout: 3 * time.Second}, "WF/tools/t.py", slowImport)
	require.Contains(t, k.fails("f", `{}`, events.CodeToolError), "f was not entered within 3s")
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestInterpreterThatHangsEndsItsCall(t *testing.T) {
	t.Parallel()
	fake := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	k := newKit(t, python.Options{LoadTimeout: 100 * time.Millisecond, Interpreter: fake}, "WF/tools/t.py", hostile)
	text := k.fails("pid", `{}`, events.CodeToolError)
	require.Contains(t, text, "it was not ready within 100ms; the tool was not entered")
}

func TestCallThatWasNotEnteredWhenItsProcessDiedRunsInAnother(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Grace: time.Millisecond}, "WF/tools/t.py", `
import os, time
async def work(path):
    if not path: return os.getpid()
    open(path, "w").close()
    time.sleep(600)  # and nothing else runs on the loop
`)
	k.value("work", `{"path":""}`) // so that it is known to be async
	ctx, cancel := context.WithCancel(t.Context())
	flag := filepath.Join(t.TempDir(), "flag")
	_, blocker := k.start(ctx, "work", `{"path":"`+flag+`"}`)
	waitForFiles(t, flag, 1)
	entered, neighbour := k.start(t.Context(), "work", `{"path":""}`)
	require.Eventually(t, func() bool { return k.pool.Stats().Running == 2 }, 5*time.Second, time.Millisecond)
	require.False(t, isClosed(entered))
	cancel()
	require.Contains(t, message(t, <-blocker, events.CodeCancelled), "while work was running")
	require.NoError(t, <-neighbour)
	require.True(t, isClosed(entered))
	require.Equal(t, uint64(2), k.pool.Stats().Started)
}

// F22: see docs/faults.md.
func TestProcessThatAlwaysDiesAtImportIsNotTriedForEver(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", "import os\nos._exit(5)\n")
	text := k.fails("f", `{}`, events.CodeToolError)
	require.Contains(t, text, "3 Python processes of workflow WF ended before they entered the tool")
	require.Contains(t, text, "exit status 5")
}

func TestPrintedLinesNameTheCallThatPrintedThem(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, sys
print("while importing")
def one(): print("one prints"); print("no end", end="")
async def two(name):
    for _ in range(3):
        print("two", name, "prints")
        await asyncio.sleep(0)
def three(): print("three complains", file=sys.stderr); raise RuntimeError("three broke")
`)
	k.value("one", `{}`)
	require.Eventually(t, func() bool { return strings.Contains(k.log.String(), `line="no end"`) }, 5*time.Second, time.Millisecond)
	k.value("two", `{"name":""}`)
	ends := map[string]chan error{}
	for _, name := range []string{"a", "b", "c"} {
		call := newCall(t, "two", `{"name":"`+name+`"}`)
		call.CallID = "turn-" + name
		end := make(chan error, 1)
		ends[name] = end
		go func() {
			_, err := k.pool.Tool("WF", "t.py", "two").Invoke(t.Context(), call)
			end <- err
		}()
	}
	for _, end := range ends {
		require.NoError(t, <-end)
	}
	k.fails("three", `{}`, events.CodeToolError)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, k.pool.Close(ctx))

	printed := map[string]int{}
	for line := range strings.SplitSeq(k.log.String(), "\n") {
		_, attrs, ok := strings.Cut(line, " stream=")
		if ok {
			printed[attrs]++
		}
	}
	for want, times := range map[string]int{
		`stdout line="while importing"`:                                          1,
		`stdout tool=one chat=c1 turn=turn-1 line="one prints"`:                  1,
		`stdout tool=one chat=c1 turn=turn-1 line="no end"`:                      1,
		`stdout tool=two chat=c1 turn=turn-a line="two a prints"`:                3,
		`stdout tool=two chat=c1 turn=turn-b line="two b prints"`:                3,
		`stdout tool=two chat=c1 turn=turn-c line="two c prints"`:                3,
		`stderr tool=three chat=c1 turn=turn-1 line="three complains"`:           1,
		`stderr tool=three chat=c1 turn=turn-1 line="RuntimeError: three broke"`: 1,
	} {
		require.Equal(t, times, printed[want], want)
	}
}

// TestArgumentsThatDoNotFitDoNotEnterTheFunction: its turn counts no attempt.
func TestArgumentsThatDoNotFitDoNotEnterTheFunction(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import functools
def plain(name): return name
async def later(name): return name
@functools.wraps(plain)
def loose(*args, **kwargs): return plain(*args, **kwargs)
`)
	for function, reached := range map[string]bool{"plain": false, "later": false, "loose": true} {
		entered, ended := k.start(t.Context(), function, `{}`)
		err := <-ended
		require.ErrorContains(t, err, "missing 1 required positional argument: 'name'", function)
		require.Equal(t, reached, isClosed(entered), function)
		entered, ended = k.start(t.Context(), function, `{"name":"x"}`)
		require.NoError(t, <-ended)
		require.True(t, isClosed(entered), function)
	}
}
