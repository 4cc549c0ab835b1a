package python_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/tools/python"
)

const exiting = `
import asyncio, atexit, threading, time
def register(path): atexit.register(lambda: open(path, "a").write("done\n")); print("registered")
async def aregister(path):
    atexit.register(lambda: open(path, "a").write("done\n"))
    async def left():
        try: await asyncio.sleep(600)
        finally: open(path, "a").write("cancelled\n")
    asyncio.get_running_loop().create_task(left())
    await asyncio.sleep(0)
def slow(path): atexit.register(time.sleep, 600); threading.Thread(target=time.sleep, args=(600,)).start()
def leave(path): register(path); raise SystemExit(3)
`

// TestWhatIsRegisteredToRunAtExitRunsOnAGentleStop: when the pool closes, when a process was idle for
// long, and when its workflow has changed.
func TestWhatIsRegisteredToRunAtExitRunsOnAGentleStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for name, stop := range map[string]func(k *kit){
		"close": func(k *kit) { require.NoError(t, k.pool.Close(ctx)) },
		"idle":  func(*kit) {},
		"renew": func(k *kit) { k.pool.Renew("WF", nil) },
	} {
		for function, want := range map[string]string{"register": "done\n", "aregister": "cancelled\ndone\n"} {
			opts := python.Options{}
			if name == "idle" {
				opts.IdleAfter = 30 * time.Millisecond
			}
			k := newKit(t, opts, "WF/tools/t.py", exiting)
			path := filepath.Join(t.TempDir(), "exit")
			k.value(function, `{"path":"`+path+`"}`)
			stop(k)
			require.Eventually(t, func() bool { return k.pool.Stats().Children == 0 }, 30*time.Second, time.Millisecond)
			text, err := os.ReadFile(path)
			require.NoError(t, err, name)
			require.Equal(t, want, string(text), name)
			require.Zero(t, k.pool.Stats().Died)
		}
	}
}

func TestProcessThatDoesNotComeToItsEndIsKilled(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{}, "WF/tools/t.py", exiting)
	k.value("slow", `{"path":""}`)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, k.pool.Close(ctx))
	require.Zero(t, k.pool.Stats().Children)
}
