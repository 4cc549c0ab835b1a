package flow_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// threadCPU is the time that this thread has computed: other processes and threads do not add to it.
func threadCPU(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_THREAD, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
