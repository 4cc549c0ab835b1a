//go:build linux

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test runs itself again, in the process that it closes.
func TestProcessesOfTheSameUserCannotReadTheMemoryOfAWorker(t *testing.T) { //nolint:paralleltest // it changes its process
	if os.Getenv("ONETURN_TEST_PRIVATE") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "ONETURN_TEST_PRIVATE=1")
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	require.NoError(t, makeUndumpable())
	const getDumpable = 3
	dumpable, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, getDumpable, 0, 0, 0, 0, 0)
	require.Zero(t, errno)
	require.Zero(t, dumpable)
	var core syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_CORE, &core))
	require.Zero(t, core.Max)
	_, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err, "the metrics of the process still count its descriptors")
	require.NoError(t, exec.CommandContext(t.Context(), "true").Run(), "it still starts tools")
}
