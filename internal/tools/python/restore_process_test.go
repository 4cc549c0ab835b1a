package python_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

const traces = `
import asyncio, contextlib, decimal, io, locale, os, signal, socket, sys, time
HOME = os.getcwd()
os.environ["AT_IMPORT"] = "stays"
def late(*_): raise RuntimeError("alarm of an earlier call")
def change():
    os.chdir("/")
    os.environ["LEFT"], os.environ["TZ"] = "changed", "Asia/Tokyo"
    os.environ.pop("AT_IMPORT")
    os.umask(0)
    signal.signal(signal.SIGALRM, late); signal.signal(signal.SIGTERM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    socket.setdefaulttimeout(0.001)
    sys.setrecursionlimit(400)
    sys.stdout = io.StringIO()
    locale.setlocale(locale.LC_ALL, "C")
    decimal.getcontext().prec = 3
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.close()
    time.tzset()
async def achange():
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, late)
    os.chdir("/")
    os.environ["LEFT"] = "changed"
    signal.signal(signal.SIGALRM, late)
    signal.alarm(1)
def run(): return asyncio.run(inner())
async def inner(): return "ok"
def seen():
    time.sleep(0.1)
    mask = os.umask(0o22)
    os.umask(mask)
    return [os.getcwd() == HOME, os.environ.get("LEFT"), os.environ.get("AT_IMPORT"), os.environ.get("TZ"), mask,
            [signal.getsignal(s) in (signal.SIG_DFL, signal.default_int_handler) for s in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT)],
            socket.getdefaulttimeout(), sys.getrecursionlimit(), type(sys.stdout).__name__, locale.setlocale(locale.LC_ALL),
            decimal.getcontext().prec, asyncio.get_event_loop().run_until_complete(inner())]
async def where(): return os.getcwd() == HOME
async def stay(path):
    open(path, "w").close()
    while not os.path.exists(path + "go"): await asyncio.sleep(0.005)
    return os.getcwd() == HOME
async def away(path): os.chdir("/")
`

// TestCallsLeaveNoTracesInTheirProcess: folder, environment, alarms, handlers, loop and the like are for
// each call what they were once its file was imported.
func TestCallsLeaveNoTracesInTheirProcess(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", traces)
	fresh := k.value("seen", `{}`)
	require.Contains(t, fresh, `"ok"`)
	for _, function := range []string{"change", "run", "achange"} {
		k.value(function, `{}`)
		require.Equal(t, fresh, k.value("seen", `{}`), "after %s", function)
		require.Equal(t, "true", k.value("where", `{}`), "after %s", function)
	}
	require.Contains(t, k.log.String(), "environment variable LEFT, which a call has changed, is as before again")
	require.Equal(t, uint64(1), k.pool.Stats().Started)
}

func TestFolderOfACallDiffersFromItsNeighbours(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", traces)
	k.value("where", `{}`)
	k.value("away", `{"path":""}`)
	path := filepath.Join(t.TempDir(), "stays")
	_, first := k.start(t.Context(), "stay", `{"path":"`+path+`"}`)
	waitForFiles(t, path, 1)
	k.value("away", `{"path":""}`)
	require.Equal(t, "true", k.value("where", `{}`))
	require.NoError(t, os.WriteFile(path+"go", nil, 0o600))
	require.NoError(t, <-first)
}
