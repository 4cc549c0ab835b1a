package python_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

const hostile = `
import asyncio, os, signal, subprocess, sys, time, ctypes
def pid(): return os.getpid()
async def apid(): return os.getpid()
def leave(code): os._exit(code)
def segfault(): ctypes.string_at(0)
def quit_now(): sys.exit()
async def aquit(): raise SystemExit("bye")
def interrupt(): raise KeyboardInterrupt
def memory(): raise MemoryError
def eat(): return len(bytearray(1 << 30))
def hang(path):
    open(path, "w").close()
    while True: time.sleep(60)
async def ahang(path):
    open(path, "w").close()
    await asyncio.sleep(600)
async def defiant(path):
    open(path, "w").close()
    while True:
        try: await asyncio.sleep(600)
        except asyncio.CancelledError: pass
async def nap(seconds): await asyncio.sleep(seconds); return "slept"
async def gate(path):
    open(path + str(os.getpid()) + "." + str(id(asyncio.current_task())), "w").close()
    while not os.path.exists(path + "open"): await asyncio.sleep(0.005)
    return os.getpid()
def sgate(path):
    open(path + str(os.getpid()), "w").close()
    while not os.path.exists(path + "open"): time.sleep(0.005)
    return os.getpid()
def run_loop(): return asyncio.run(nap(0))
def orphan(path):
    child = subprocess.Popen(["sleep", "600"])
    open(path, "w").write(str(child.pid))
    os._exit(9)
def close_frames(): os.close(4); time.sleep(60)
def garbage(): os.write(4, b"\xff\xff\xff\xff garbage"); time.sleep(60)
async def left_behind():
    async def boom(): raise SystemExit(4)
    asyncio.get_running_loop().create_task(boom())
    await asyncio.sleep(0.01)
    return "fine"
def flood(n):
    for i in range(n): print("line", i)
    print("x" * 100000); print("secret is", os.environ["TOKEN"]); return "done"
`

func TestProcessThatEndsIsReplacedAndNamesTheReason(t *testing.T) {
	t.Parallel()
	cases := []struct {
		function, args, want string
		notOnItsOwn          bool // retired after its answer, not crashed
	}{
		{"leave", `{"code":3}`, "the Python process died (exit status 3) while leave was running", false},
		{"segfault", `{}`, "the Python process died (signal: segmentation fault) while segfault was running", false},
		{"quit_now", `{}`, "SystemExit", true},
		{"aquit", `{}`, "SystemExit: bye", true},
		{"interrupt", `{}`, "KeyboardInterrupt", true},
		{"memory", `{}`, "MemoryError", true},
		{"close_frames", `{}`, "died (signal: killed", false},
		{"garbage", `{}`, "it broke the frame protocol", false},
	}
	for _, c := range cases {
		t.Run(c.function, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
			before := k.value("pid", `{}`)
			require.Contains(t, k.fails(c.function, c.args, events.CodeToolError), c.want)
			require.NotEqual(t, before, k.value("pid", `{}`))
			stats := k.pool.Stats()
			require.Equal(t, uint64(2), stats.Started)
			require.Equal(t, c.notOnItsOwn, stats.Died == 0)
		})
	}
}

func TestMemoryLimitEndsTheCallNotTheWorker(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{MaxMemory: 768 << 20}, "WF/tools/t.py", hostile)
	require.Equal(t, "MemoryError", k.fails("eat", `{}`, events.CodeToolError))
	k.value("pid", `{}`)
}

func TestCallThatDoesNotEndIsAbandonedAtItsDeadline(t *testing.T) {
	t.Parallel()
	for function, grace := range map[string]time.Duration{
		"hang": 50 * time.Millisecond, "ahang": 10 * time.Second, "defiant": 50 * time.Millisecond,
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, python.Options{Grace: grace}, "WF/tools/t.py", hostile)
			before := k.value("pid", `{}`)
			k.value("apid", `{}`)
			flag := filepath.Join(t.TempDir(), "running")
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := k.invoke(ctx, function, `{"path":"`+flag+`"}`)
				failed <- err
			}()
			waitForFiles(t, flag, 1)
			cancel()
			require.Contains(t, message(t, <-failed, events.CodeCancelled), "cancelled while "+function+" was running")
			after := k.value("pid", `{}`)
			require.Equal(t, function == "ahang", before == after, "only a task that obeys leaves its process alive")
		})
	}
}

func TestDeadlineIsATimeout(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
	k.value("pid", `{}`)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := k.invoke(ctx, "nap", `{"seconds":60}`)
	require.Contains(t, message(t, err, events.CodeTimeout), "timeout while nap was running")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = k.invoke(ctx, "nap", `{"seconds":0}`)
	require.Contains(t, message(t, err, events.CodeTimeout), "not entered")
}

func TestAsyncCallsShareAProcessAndSyncOnesDoNot(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Size: 3}, "WF/tools/t.py", hostile)
	require.Equal(t, []int{20}, processes(t, k, "gate", 20))
	require.Equal(t, []int{1, 1, 1}, processes(t, k, "sgate", 3))
}

// processes runs n calls that all wait for each other and returns how many of them each
// process had, largest first.
func processes(t *testing.T, k *kit, function string, n int) []int {
	t.Helper()
	dir := t.TempDir() + string(filepath.Separator)
	if function == "gate" {
		k.value("nap", `{"seconds":0}`)
		require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
		k.value(function, `{"path":"`+dir+`"}`) // so that it is known to be async
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.Mkdir(dir, 0o750))
	}
	pids := make(chan string, n)
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			result, err := k.invoke(t.Context(), function, `{"path":"`+dir+`"}`)
			if err != nil {
				pids <- err.Error()
				return
			}
			pids <- string(result.Value)
		})
	}
	waitForFiles(t, dir+"*", n)
	require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
	calls.Wait()
	close(pids)
	counts := map[string]int{}
	for pid := range pids {
		counts[pid]++
	}
	found := make([]int, 0, len(counts))
	for _, count := range counts {
		found = append(found, count)
	}
	return found
}

func waitForFiles(t *testing.T, pattern string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) >= n
	}, 15*time.Second, 2*time.Millisecond)
}

func TestCallsWaitInLineAndLeaveItWhenTheirContextEnds(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
	dir := t.TempDir() + string(filepath.Separator)
	first := make(chan error, 1)
	go func() {
		_, err := k.invoke(t.Context(), "sgate", `{"path":"`+dir+`"}`)
		first <- err
	}()
	waitForFiles(t, dir+"*", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := k.invoke(ctx, "pid", `{}`)
	require.Contains(t, message(t, err, events.CodeTimeout), "waited for a free Python process; the tool was not entered")
	second := make(chan error, 1)
	go func() {
		_, err := k.invoke(t.Context(), "pid", `{}`)
		second <- err
	}()
	require.Eventually(t, func() bool { return k.pool.Stats().Waiting == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
	require.NoError(t, <-first)
	require.NoError(t, <-second)
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestCrashHurtsOnlyItsOwnProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Size: 2}, "WF/tools/t.py", hostile)
	dir := t.TempDir() + string(filepath.Separator)
	other := make(chan error, 1)
	go func() {
		_, err := k.invoke(t.Context(), "sgate", `{"path":"`+dir+`"}`)
		other <- err
	}()
	waitForFiles(t, dir+"*", 1)
	k.fails("leave", `{"code":1}`, events.CodeToolError)
	require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
	require.NoError(t, <-other)
}

func TestSyncToolsMayRunTheirOwnLoop(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
	require.Equal(t, `"slept"`, k.value("run_loop", `{}`))
	require.Equal(t, `"fine"`, k.value("left_behind", `{}`))
	require.Equal(t, `"slept"`, k.value("nap", `{"seconds":0}`))
}

func TestNothingThatAToolStartedOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
	file := filepath.Join(t.TempDir(), "pid")
	require.Contains(t, k.fails("orphan", `{"path":"`+file+`"}`, events.CodeToolError), "exit status 9")
	require.Eventually(t, func() bool { return !alive(t, file) }, 5*time.Second, 2*time.Millisecond)
}

// alive reports whether the process whose id a file holds runs.
func alive(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ") // a zombie is dead; not every system has /proc
}

func TestOutputIsLoggedWithinBoundsAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile, "WF/.env", "TOKEN=canary-1234\n")
	k.value("pid", `{}`)
	require.Equal(t, `"done"`, k.value("flood", `{"n":100}`))
	require.Eventually(t, func() bool { return strings.Contains(k.log.String(), "secret is [secret]") }, 5*time.Second, 5*time.Millisecond)
	require.NotContains(t, k.log.String(), "canary-1234")
	require.Contains(t, k.log.String(), "cut=true")
	require.Equal(t, `"done"`, k.value("flood", `{"n":50000}`))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, k.pool.Close(ctx))
	require.Contains(t, k.log.String(), "tool output omitted")
	require.Less(t, len(k.log.String()), 4<<20)
}

func TestIdleProcessesAreEnded(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{IdleAfter: 30 * time.Millisecond}, "WF/tools/t.py", hostile)
	first := k.value("pid", `{}`)
	require.Eventually(t, func() bool { return k.pool.Stats().Children == 0 }, 5*time.Second, 2*time.Millisecond)
	require.NotEqual(t, first, k.value("pid", `{}`))
	require.Zero(t, k.pool.Stats().Died)
}

func TestRenewBringsInChangedFilesAndDisturbsNoRunningCall(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", "import no_such_module_here\n")
	text := k.fails("version", `{}`, events.CodeToolError)
	require.Contains(t, text, "ModuleNotFoundError: No module named 'no_such_module_here' (while importing t.py)")
	require.Equal(t, uint64(1), k.pool.Stats().Started)

	k.write("WF/tools/t.py", hostile+"\ndef version(): return 1\n")
	require.Equal(t, "1", k.value("version", `{}`))
	k.write("WF/tools/t.py", hostile+"\ndef version(): return 2\n")
	require.Equal(t, "1", k.value("version", `{}`))
	dir := t.TempDir() + string(filepath.Separator)
	running := make(chan error, 1)
	go func() {
		_, err := k.invoke(t.Context(), "sgate", `{"path":"`+dir+`"}`)
		running <- err
	}()
	waitForFiles(t, dir+"*", 1)
	k.pool.Renew("WF", nil)
	k.pool.Renew("Unknown", nil)
	require.Equal(t, "2", k.value("version", `{}`))
	require.NoError(t, os.WriteFile(dir+"open", nil, 0o600))
	require.NoError(t, <-running)
}

func TestCloseWaitsForCallsAndKillsThemWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", hostile)
	flag := filepath.Join(t.TempDir(), "running")
	failed := make(chan error, 1)
	go func() {
		_, err := k.invoke(t.Context(), "hang", `{"path":"`+flag+`"}`)
		failed <- err
	}()
	waitForFiles(t, flag, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, k.pool.Close(ctx), context.Canceled)
	require.Contains(t, message(t, <-failed, events.CodeToolError), "the worker shut down")
	require.Zero(t, k.pool.Stats().Children)
	require.Contains(t, k.fails("pid", `{}`, events.CodeToolError), "shutting down")
}

func TestEveryCallEndsWhateverItsNeighboursDo(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Size: 2, Grace: time.Millisecond}, "WF/tools/t.py", hostile)
	calls := []struct{ function, args string }{
		{"pid", `{}`},
		{"apid", `{}`},
		{"nap", `{"seconds":0.01}`},
		{"nap", `{"seconds":60}`},
		{"leave", `{"code":1}`},
		{"aquit", `{}`},
		{"pid", `{}`},
		{"apid", `{}`},
	}
	const rounds = 5
	results := make(chan error, rounds*len(calls))
	for range rounds {
		for _, c := range calls {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if c.args == `{"seconds":60}` {
					ctx, cancel = context.WithTimeout(ctx, 150*time.Millisecond)
					defer cancel()
				}
				_, err := k.invoke(ctx, c.function, c.args)
				results <- err
			}()
		}
	}
	ok := 0
	for range cap(results) {
		if err := <-results; err == nil {
			ok++
		} else {
			require.NotEmpty(t, events.CodeOf(err))
		}
	}
	require.NotZero(t, ok)
	require.Eventually(t, func() bool { s := k.pool.Stats(); return s.Running == 0 && s.Waiting == 0 }, 15*time.Second, 2*time.Millisecond)
	k.value("pid", `{}`)
}
