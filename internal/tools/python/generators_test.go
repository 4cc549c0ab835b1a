package python_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/python"
)

const yielding = `
import asyncio, functools, os, time
def gen(path):
    yield {"status": "pending", "message": "sending", "percent": 40}
    open(path, "w").write("sent")
    time.sleep(0.1)
    yield "nearly"
    yield {"status": "success"}
async def agen(path):
    yield {"message": "sending"}
    await asyncio.sleep(0)
    open(path, "w").write("sent")
    yield {"status": "success"}
def returns():
    yield 1
    return "returned"
def nothing():
    return
    yield
def plain(function):
    def inner(*args, **kwargs): return function(*args, **kwargs)
    return inner
def wrapped(function):
    @functools.wraps(function)
    def inner(*args, **kwargs): return function(*args, **kwargs)
    return inner
@plain
def decorated(): yield "no"; yield "last"
@wrapped
def marked(): yield "no"; yield "last"
@plain
async def adecorated(): yield "no"; yield "last"
async def _later(): yield "no"; yield "last"
def hands_on(): return _later()
def fails():
    yield "half"
    raise ValueError("out of stock")
async def afails():
    yield "half"
    raise ValueError("out of stock")
def numbers(): return (n for n in [1, 2])
def rows():
    def read(): yield 1; yield 2
    return read()
async def arows(): return [n async for n in _later()]
def needs(item): yield item
def forever(path):
    try:
        while True:
            yield "again"
            open(path, "w").close()
            time.sleep(0.001)
    finally: open(path + ".closed", "w").close()
async def aforever(path):
    try:
        while True:
            yield "again"
            open(path, "w").close()
            await asyncio.sleep(0.001)
    finally: open(path + ".closed", "w").close()
`

// TestToolThatYieldsRunsToItsEnd: what it yields is progress, the value that it returns, else the last
// one, is the result.
func TestToolThatYieldsRunsToItsEnd(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", yielding)
	for _, function := range []string{"gen", "agen"} {
		path, d := filepath.Join(t.TempDir(), "sent"), newHost()
		require.JSONEq(t, `{"status":"success"}`, k.valueAt(d, function, `{"path":"`+path+`"}`))
		require.FileExists(t, path)
		require.Equal(t, "sending", d.progress[0].Message)
		if function == "gen" {
			require.InDelta(t, 40, d.progress[0].Percent, 0)
			require.Equal(t, "nearly", d.progress[1].Message)
		}
	}
	for function, want := range map[string]string{
		"returns": `"returned"`, "nothing": "null", "decorated": `"last"`, "marked": `"last"`, "adecorated": `"last"`,
		"hands_on": `"last"`, "numbers": "[1,2]", "rows": "[1,2]", "arows": `["no","last"]`,
	} {
		require.JSONEq(t, want, k.value(function, `{}`), "%s, without a host for its progress", function)
	}
	require.Equal(t, "out of stock", k.fails("fails", `{}`, events.CodeUserError))
	require.Equal(t, "out of stock", k.fails("afails", `{}`, events.CodeUserError))
	require.Contains(t, k.fails("needs", `{}`, events.CodeBadArgs), "missing 1 required positional argument: 'item'")
}

func TestToolThatYieldsIsClosedWhenItsCallIsCancelled(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"forever", "aforever"} {
		k := newKit(t, python.Options{Grace: 30 * time.Second}, "WF/tools/t.py", yielding)
		path := filepath.Join(t.TempDir(), "running")
		ctx, cancel := context.WithCancel(t.Context())
		_, ended := k.start(ctx, function, `{"path":"`+path+`"}`)
		waitForFiles(t, path, 1)
		cancel()
		message(t, <-ended, events.CodeCancelled)
		waitForFiles(t, path+".closed", 1)
		require.NoError(t, os.Remove(path))
	}
}
