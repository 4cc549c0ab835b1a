package hostile_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// threadCPU is the time that this thread has computed: what other tests do is not in it.
func threadCPU(t *testing.T) time.Duration {
	t.Helper()
	return cpu(t, syscall.RUSAGE_THREAD)
}

// processCPU is the time that the process has computed.
func processCPU(t *testing.T) time.Duration {
	t.Helper()
	return cpu(t, syscall.RUSAGE_SELF)
}

func cpu(t *testing.T, who int) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(who, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
