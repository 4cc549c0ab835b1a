package python_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/python"
)

// workerRoot names the variable that makes this test binary a worker that dies inside a tool.
const workerRoot = "PYTHON_TEST_WORKER_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(workerRoot); root != "" {
		tool := python.NewPool(python.Options{Root: root}).Tool("WF", "t.py", "hang")
		_, err := tool.Invoke(context.Background(), &tools.Call{})
		fmt.Fprintln(os.Stderr, err)
		return
	}
	goleak.VerifyTestMain(m)
}

func TestToolDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "pid")
	k := newKit(t, python.Options{}, "WF/tools/t.py", `
import os
def hang():
    with open("`+file+`.part", "w") as f: f.write(str(os.getpid()))
    os.rename("`+file+`.part", "`+file+`")
    while True: pass
`)
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Env = append(os.Environ(), workerRoot+"="+k.root)
	require.NoError(t, worker.Start())
	waitForFiles(t, file, 1)
	require.True(t, alive(t, file))
	require.NoError(t, worker.Process.Kill())
	require.Error(t, worker.Wait())
	require.Eventually(t, func() bool { return !alive(t, file) }, 5*time.Second, 2*time.Millisecond)
}
