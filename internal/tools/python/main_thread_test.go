package python_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

const onMain = `
import asyncio, signal, threading, time
LOOP = asyncio.get_event_loop()
QUEUE, LOCK, DONE = asyncio.Queue(), asyncio.Lock(), asyncio.Event()
def main(): return threading.current_thread() is threading.main_thread()
async def amain(): return main()
def sync_main(): return main()
async def gmain(): yield main()
def hidden(): return amain()
async def sig():
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
    asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
    return "set"
async def loop(): return [LOOP is asyncio.get_running_loop(), await LOOP.run_in_executor(None, lambda: 5)]
async def queue():
    asyncio.get_running_loop().call_later(0.01, QUEUE.put_nowait, 5)
    async with LOCK: return await QUEUE.get()
async def event():
    asyncio.get_running_loop().call_later(0.01, DONE.set)
    await DONE.wait()
    proc = await asyncio.create_subprocess_exec("true")
    return await proc.wait()
def sync_loop(): return LOOP.run_until_complete(amain())
def own_loop():
    loop = asyncio.get_event_loop()
    try: return loop.run_until_complete(amain())
    finally: loop.close()
def runs(): return asyncio.run(amain())
async def left_behind():
    async def later(): await asyncio.sleep(0.05); DONE.set()
    DONE.clear()
    asyncio.get_running_loop().create_task(later())
def was_done():
    for _ in range(200):
        if DONE.is_set(): return True
        LOOP.run_until_complete(asyncio.sleep(0.01))
`

// TestFunctionsRunOnTheMainThreadWhereTheirFileWasImported: what needs it, or was made at import, works.
func TestFunctionsRunOnTheMainThreadWhereTheirFileWasImported(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", onMain)
	for range 2 {
		for function, want := range map[string]string{
			"amain": "true", "sync_main": "true", "gmain": "true", "hidden": "true", "sig": `"set"`, "loop": "[true,5]", "queue": "5",
			"event": "0", "sync_loop": "true", "own_loop": "true", "runs": "true",
		} {
			require.Equal(t, want, k.value(function, `{}`), function)
		}
	}
	k.value("left_behind", `{}`)
	require.Equal(t, "true", k.value("was_done", `{}`))
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

// TestCallsContinueWhileOthersOfTheirProcessWaitForAPerson, sync and async ones, whichever has the main
// thread.
func TestCallsContinueWhileOthersOfTheirProcessWaitForAPerson(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio, oneturn, time
def ask(): return oneturn.ask("Q")
async def aask(): return await oneturn.ask("Q")
def work(): return asyncio.get_event_loop().run_until_complete(awork())
async def awork(): await asyncio.sleep(0.01); return "worked"
def nested(): return oneturn.step("s", awork)
def slow(seconds): time.sleep(seconds); return "worked"
`)
	for _, asker := range []string{"ask", "aask"} {
		d := newHost()
		ended, value := k.background(t.Context(), d, asker, `{}`)
		next(t, d.asked)
		for _, function := range []string{"work", "awork", "nested", "awork"} {
			require.Equal(t, `"worked"`, k.valueAt(newHost(), function, `{}`))
		}
		slow, end := k.start(t.Context(), "slow", `{"seconds":3}`)
		<-slow
		d.answers <- []byte(`"yes"`)
		require.NoError(t, <-ended)
		require.Equal(t, `"yes"`, *value)
		require.Empty(t, end, "a neighbour that works does not hold up who was answered")
		require.NoError(t, <-end)
	}
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

// TestDecoratedAsyncCallsShareAProcess: once it is seen that the function is async.
func TestDecoratedAsyncCallsShareAProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import asyncio
def plain(function):
    def inner(*args, **kwargs): return function(*args, **kwargs)
    return inner
GO = asyncio.Event()
@plain
async def meet(first):
    if first: await GO.wait()
    else: GO.set()
`)
	_, first := k.start(t.Context(), "meet", `{"first":true}`)
	_, second := k.start(t.Context(), "meet", `{"first":false}`)
	require.NoError(t, <-second)
	require.NoError(t, <-first)
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}
