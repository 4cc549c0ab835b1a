package python_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

func countLines(k *kit, text string) int { return strings.Count(k.log.String(), text) }

// asker asks in every way, and writes the outcome to a file.
const asker = `
import asyncio, oneturn, os, threading, time
from core.workflow.ui_tools import use_ui_tool
def note(path, text):
    with open(path, "a") as f: f.write(text + "\n")
async def use(path=None):
    print("before", flush=True)
    try: answer = await use_ui_tool("Form", {})
    except Exception as e: note(path, "exception " + repr(e)); raise
    except BaseException as e:
        note(path, type(e).__name__ + ": " + str(e))
        try: await use_ui_tool("Again", {})
        except BaseException as again: note(path, type(again).__name__)
        raise
    print("after", flush=True)
    return answer
def ask(path=None):
    print("before", flush=True)
    try: answer = oneturn.ask("Form", {})
    except Exception as e: note(path, "exception " + repr(e)); raise
    except BaseException as e:
        note(path, type(e).__name__ + ": " + str(e))
        try: oneturn.ask("Again", {})
        except BaseException as again: note(path, type(again).__name__)
        raise
    print("after", flush=True)
    return answer
def returns(path=None): return use(path)
def own_loop(path=None): return asyncio.run(use(path))
async def thread(path=None): return await asyncio.to_thread(ask, path)
async def task(path=None): return await asyncio.create_task(use(path))
async def deaf():
    while True:
        try: await use_ui_tool("Form", {})
        except asyncio.CancelledError: pass
def on_main(): return threading.current_thread() is threading.main_thread()
def pid(): return os.getpid()
async def apid(): return os.getpid()
def busy(path):
    open(path, "w").close()
    while not os.path.exists(path + "open"): time.sleep(0.005)
    return on_main()
`

func TestParkedRunIsCancelledAndItsProcessContinues(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"use", "ask", "returns", "own_loop", "thread", "task"} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, python.Options{Grace: 10 * time.Second}, "WF/tools/t.py", asker)
			file := filepath.Join(t.TempDir(), "notes")
			for round, cause := range []error{tools.ErrParked, nil} {
				ctx, cancel := context.WithCancelCause(t.Context())
				d := newHost()
				ended, _ := k.background(ctx, d, function, `{"path":"`+file+strconv.Itoa(round)+`"}`)
				next(t, d.asked)
				cancel(cause)
				err := next(t, ended)
				require.Equal(t, cause != nil, strings.Contains(err.Error(), tools.ErrParked.Error()))
				if cause != nil {
					require.ErrorIs(t, err, tools.ErrParked)
				}
				var notes []byte
				require.Eventually(t, func() bool {
					notes, _ = os.ReadFile(file + strconv.Itoa(round))
					return strings.Count(string(notes), "\n") == 2
				}, 10*time.Second, 5*time.Millisecond)
				require.Regexp(t, `\ACancelledError.*\nCancelledError\n\z`, string(notes))
				require.Equal(t, "true", k.value("on_main", `{}`))
				require.Len(t, d.questions, 1)
				require.Equal(t, 1, d.gone)
			}
			require.Equal(t, uint64(1), k.pool.Stats().Started)
			require.NotContains(t, k.log.String(), "Traceback")
		})
	}
}

func TestHostThatParksEndsTheRunToo(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Grace: 10 * time.Second}, "WF/tools/t.py", asker)
	file := filepath.Join(t.TempDir(), "notes")
	_, err := k.at(t.Context(), newHost().refuses(tools.ErrParked), "use", `{"path":"`+file+`"}`)
	require.ErrorIs(t, err, tools.ErrParked)
	waitForFiles(t, file, 1)
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestParkedRunThatContinuesLosesItsProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Grace: 10 * time.Millisecond}, "WF/tools/t.py", asker)
	ctx, park := context.WithCancelCause(t.Context())
	d := newHost()
	ended, _ := k.background(ctx, d, "deaf", `{}`)
	next(t, d.asked)
	park(tools.ErrParked)
	require.ErrorIs(t, next(t, ended), tools.ErrParked)
	require.Eventually(t, func() bool { return k.pool.Stats().Died == 1 }, 10*time.Second, 5*time.Millisecond)
	k.value("pid", `{}`)
	require.Len(t, d.questions, 1, "nothing reaches the host of a run that was parked")
}

func TestCallsThatWaitForPeopleTakeNoRoom(t *testing.T) {
	t.Parallel()
	const waiting = 150 // more than share a process otherwise
	k := newKit(t, python.Options{LoadTimeout: 3 * time.Second}, "WF/tools/t.py", asker)
	d := newHost()
	ends := make([]chan error, 0, 2*waiting)
	for _, function := range []string{"use", "ask", "returns"} {
		for range waiting / 3 {
			ended, _ := k.background(t.Context(), d, function, `{}`)
			ends = append(ends, ended)
			next(t, d.asked)
		}
	}
	require.Eventually(t, func() bool { return k.pool.Stats().Asking == waiting }, 5*time.Second, time.Millisecond)
	require.Zero(t, k.pool.Stats().Running)
	first := k.value("pid", `{}`)
	require.Equal(t, first, k.value("apid", `{}`))
	require.Equal(t, "false", k.value("on_main", `{}`), "a call on the main thread waits there")
	for range waiting {
		d.answers <- json.RawMessage(`{}`)
	}
	for _, ended := range ends {
		require.NoError(t, next(t, ended))
	}
	require.Equal(t, first, k.value("pid", `{}`))
	require.Equal(t, "true", k.value("on_main", `{}`))
	stats := k.pool.Stats()
	require.Equal(t, python.Stats{Children: 1, Started: 1}, stats)
}

func TestCallThatContinuesRunsWithTheOneThatTookItsRoom(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", asker)
	d := newHost()
	ended, _ := k.background(t.Context(), d, "ask", `{}`)
	next(t, d.asked)
	file := filepath.Join(t.TempDir(), "busy")
	_, other := k.start(t.Context(), "busy", `{"path":"`+file+`"}`)
	waitForFiles(t, file, 1)
	d.answers <- json.RawMessage(`1`)
	require.NoError(t, next(t, ended))
	made(t, file)
	require.NoError(t, next(t, other))
	require.Equal(t, "true", k.value("on_main", `{}`))
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestProcessOfACallThatWaitsIsNotReapedAndKeepsItsVersion(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{IdleAfter: 20 * time.Millisecond}, "WF/tools/t.py", asker)
	d := newHost()
	ended, _ := k.background(t.Context(), d, "use", `{}`)
	next(t, d.asked)
	k.value("pid", `{}`) // after which the process would be idle
	idle, _ := k.background(t.Context(), newHost(), "use", `{}`)
	require.Eventually(t, func() bool { return k.pool.Stats().Asking == 2 }, 5*time.Second, time.Millisecond)
	k.pool.Renew("WF", nil)
	k.value("pid", `{}`)
	require.Eventually(t, func() bool { s := k.pool.Stats(); return s.Children == 1 && s.Started == 2 }, 5*time.Second, time.Millisecond,
		"the new one is idle and ends")
	d.answers <- json.RawMessage(`1`)
	require.NoError(t, next(t, ended))
	require.Equal(t, 1, k.pool.Stats().Asking)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, k.pool.Close(ctx), context.Canceled)
	require.Contains(t, message(t, next(t, idle), events.CodeToolError), "the worker shut down")
	require.Equal(t, python.Stats{Started: 2, Asking: 0, Died: 0}, k.pool.Stats())
}

func TestCloseWaitsForACallThatIsAnswered(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", asker)
	d := newHost()
	ended, _ := k.background(t.Context(), d, "ask", `{}`)
	next(t, d.asked)
	closed := make(chan error, 1)
	go func() { closed <- k.pool.Close(t.Context()) }()
	require.Eventually(t, func() bool {
		_, err := k.at(t.Context(), d, "pid", `{}`)
		return err != nil && strings.Contains(err.Error(), "shutting down")
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, 1, k.pool.Stats().Asking)
	d.answers <- json.RawMessage(`1`)
	require.NoError(t, next(t, ended))
	require.NoError(t, next(t, closed))
}

func TestProcessThatDiesEndsTheCallsThatWaitInIt(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", asker+"\ndef leave(): os._exit(3)\n")
	d := newHost()
	ended, _ := k.background(t.Context(), d, "use", `{}`)
	next(t, d.asked)
	k.fails("leave", `{}`, events.CodeToolError)
	require.Contains(t, message(t, next(t, ended), events.CodeToolError), "died (exit status 3) while use was running")
	require.Equal(t, 1, d.gone)
	require.Zero(t, k.pool.Stats().Asking)
}

func TestOneWaitMayBeGivenUp(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio
from core.workflow.ui_tools import use_ui_tool, UIToolError
async def impatient():
    for _ in range(100):
        try: await asyncio.wait_for(use_ui_tool("Form", {}), 0.001)
        except asyncio.TimeoutError: pass
    first, pending = await asyncio.wait([asyncio.ensure_future(use_ui_tool("Form", {"n": n})) for n in range(2)], return_when=asyncio.FIRST_COMPLETED)
    for task in pending: task.cancel()
    return [task.result() for task in first]
left = []
async def leaves_one():
    async def later():
        try: await use_ui_tool("Form", {})
        except UIToolError as e: left.append(str(e))
    global task
    task = asyncio.create_task(later())
    await asyncio.sleep(0.01)
    return "done"
async def what_became_of_it():
    await task
    return left
`)
	d := newHost()
	ended, value := k.background(t.Context(), d, "impatient", `{}`)
	for range 102 {
		next(t, d.asked)
	}
	d.answers <- json.RawMessage(`"one"`)
	require.NoError(t, next(t, ended))
	require.JSONEq(t, `["one"]`, *value)

	d = newHost()
	require.Equal(t, `"done"`, k.valueAt(d, "leaves_one", `{}`))
	require.Equal(t, 1, d.gone, "its waiter has ended")
	require.Contains(t, k.value("what_became_of_it", `{}`), "the call has ended")
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestLinesOfACallThatWaitedNameItStill(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", asker)
	d := newHost()
	ended, _ := k.background(t.Context(), d, "use", `{}`)
	next(t, d.asked)
	for range 200 { // more than are remembered
		k.value("apid", `{}`)
	}
	d.answers <- json.RawMessage(`1`)
	require.NoError(t, next(t, ended))
	for _, line := range []string{"before", "after"} {
		require.Eventually(t, func() bool {
			return countLines(k, `stdout tool=use chat=c1 turn=turn-1 line=`+line) == 1
		}, 5*time.Second, 5*time.Millisecond)
	}
}

func TestInvalidHostFramesEndOnlyTheirCall(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Grace: 10 * time.Second}, "WF/tools/t.py", asker+`
import json
async def send(text, times=1):
    from _oneturn_host import api
    for n in range(times):
        body = ('{"id":%d,"n":%d,%s}' % (api.call_number(), n + 1, text)).encode()
        os.write(4, len(body).to_bytes(4, "big") + body)
    await asyncio.sleep(600)
`)
	d := newHost()
	ended, _ := k.background(t.Context(), d, "use", `{}`)
	next(t, d.asked)
	for text, want := range map[string]string{
		`"op":"sing","body":{}`: `unknown operation "sing" of a host`,
		`"op":"ask","body":7`:   "parse a question",
		`"op":"show","body":[]`: "parse what to show",
		`"op":"step_get"`:       "parse an operation",
	} {
		_, err := k.at(t.Context(), newHost(), "send", string(mustJSON(t, map[string]any{"text": text})))
		require.Contains(t, message(t, err, events.CodeToolError), want)
	}
	_, err := k.at(t.Context(), newHost(), "send", string(mustJSON(t, map[string]any{"text": `"op":"ask","body":{}`, "times": 65})))
	require.Contains(t, message(t, err, events.CodeToolError), "operation 65 with 64 open ones")
	d.answers <- json.RawMessage(`1`)
	require.NoError(t, next(t, ended))
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

// slow is a host that takes its time to note that a wait was given up.
type slow struct {
	*scriptedHost

	noted chan struct{}
}

func (s slow) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	a, err := s.scriptedHost.Ask(ctx, q)
	<-s.noted
	return a, err
}

func TestCodeAfterAnAbandonedWaitWaitsForTheWorkersRecordOfIt(t *testing.T) {
	t.Parallel()
	after := filepath.Join(t.TempDir(), "after")
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, oneturn
async def impatient(path):
    try: await asyncio.wait_for(oneturn.ask("Form"), 0.001)
    except asyncio.TimeoutError: open(path, "w").close()
`)
	d := slow{newHost(), make(chan struct{})}
	ended, _ := k.background(t.Context(), d, "impatient", `{"path":"`+after+`"}`)
	next(t, d.asked)
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.gone == 1
	}, 10*time.Second, time.Millisecond)
	require.Never(t, func() bool {
		_, err := os.Stat(after)
		return err == nil
	}, 100*time.Millisecond, 5*time.Millisecond, "the tool continued before the worker knew that it waits no longer")
	close(d.noted)
	require.NoError(t, next(t, ended))
	require.FileExists(t, after)
}

func TestForkedCopyOfAToolCannotAskAndGetsAnError(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import multiprocessing, oneturn, os
def both():
    child = os.fork()
    if child: os.waitpid(child, 0)
    return oneturn.ask("Form", {"copy": child == 0})
def apart():
    def work():
        try: oneturn.ask("Form")
        except oneturn.UIToolError: os._exit(7)
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    return child.exitcode
`)
	d := newHost().answer("1", `"yes"`)
	require.Equal(t, `"yes"`, k.valueAt(d, "both", `{}`))
	require.Len(t, d.questions, 1)
	require.JSONEq(t, `{"copy":false}`, string(d.questions[0].Payload))
	require.Equal(t, "7", k.valueAt(d, "apart", `{}`), "a copy that ends in silence, as if all were well, is taken for one that was answered")
	require.Len(t, d.questions, 1)
}
