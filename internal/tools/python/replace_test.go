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

func TestNeighboursOfACallThatDoesNotEndFinishInTheirOwnTime(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Grace: time.Millisecond}, "WF/tools/t.py", hostile)
	k.value("apid", `{}`)
	dir := t.TempDir()
	k.value("gate", `{"path":"`+made(t, filepath.Join(dir, "warm"))+`"}`) // so that it is known to be async
	ctx, cancel := context.WithCancel(t.Context())
	entered, stubborn := k.start(ctx, "defiant", `{"path":"`+filepath.Join(dir, "stubborn")+`"}`)
	<-entered
	waitForFiles(t, filepath.Join(dir, "stubborn"), 1)
	entered, neighbour := k.start(t.Context(), "gate", `{"path":"`+filepath.Join(dir, "gate")+`"}`)
	<-entered // the pool knows that it runs there, which its file shows before that
	cancel()
	message(t, <-stubborn, events.CodeCancelled)
	require.Eventually(t, func() bool { return k.pool.Stats().Died == 1 }, 10*time.Second, time.Millisecond)
	k.value("apid", `{}`) // new calls do not wait for the old process
	require.Equal(t, uint64(2), k.pool.Stats().Started)
	made(t, filepath.Join(dir, "gate"))
	require.NoError(t, <-neighbour)
	require.Eventually(t, func() bool { return k.pool.Stats().Children == 1 }, 10*time.Second, time.Millisecond)
	require.Equal(t, uint64(1), k.pool.Stats().Died)
}

func TestNeighboursThatAreCutOffEndAsInterrupted(t *testing.T) {
	t.Parallel()
	k := newKit(t, python.Options{Grace: time.Millisecond}, "WF/tools/t.py", hostile+`
async def block(path):
    if not path: return
    open(path, "w").close()
    time.sleep(600)
`)
	dir := t.TempDir()
	k.value("gate", `{"path":"`+made(t, filepath.Join(dir, "warm"))+`"}`)
	k.value("apid", `{}`)
	k.value("block", `{"path":""}`)
	entered, neighbour := k.start(t.Context(), "gate", `{"path":"`+filepath.Join(dir, "gate")+`"}`)
	<-entered
	entered, blocking := k.start(t.Context(), "block", `{"path":"`+filepath.Join(dir, "block")+`"}`)
	<-entered
	waitForFiles(t, filepath.Join(dir, "block"), 1)
	ctx, cancel := context.WithCancel(t.Context())
	entered, third := k.start(ctx, "apid", `{}`) // is never entered, as the loop is blocked
	require.Eventually(t, func() bool { return k.pool.Stats().Running == 3 }, 10*time.Second, time.Millisecond)
	cancel()
	require.Contains(t, message(t, <-third, events.CodeCancelled), "the tool was not entered")
	require.False(t, isClosed(entered))
	for _, cut := range []<-chan error{neighbour, blocking} {
		require.Contains(t, message(t, <-cut, events.CodeInterrupted), "its effect may or may not have happened")
	}
}

// made creates the file that opens a gate and returns the gate's path.
func made(t *testing.T, path string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path+"open", nil, 0o600))
	return path
}
