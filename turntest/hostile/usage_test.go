package hostile_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The budget of one message or manifest.
const (
	maxCPU    = 100 * time.Millisecond
	maxMemory = 64 << 20 // bytes allocated, whether or not they are in use at the same time
)

// within runs f and holds it to the budget. It is the best of three that counts: what a busy
// machine adds is none of f's.
func within(t *testing.T, name string, f func()) {
	t.Helper()
	withinTimes(t, 1, threadCPU, name, f)
}

// withinTimes is within for n times the budget, and by another clock: processCPU is for what
// starts goroutines of its own.
func withinTimes(t *testing.T, n int, clock func(*testing.T) time.Duration, name string, f func()) {
	t.Helper()
	mostCPU, mostMemory := time.Duration(n)*slowdown*maxCPU, uint64(n)*maxMemory
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu, memory := time.Hour, uint64(1<<62)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := clock(t)
		f()
		cpu = min(cpu, clock(t)-start)
		runtime.ReadMemStats(&after)
		memory = min(memory, after.TotalAlloc-before.TotalAlloc)
		if cpu <= mostCPU && memory <= mostMemory {
			break
		}
	}
	t.Logf("%s: %s, %d kB", name, cpu, memory>>10)
	require.LessOrEqual(t, cpu, mostCPU, name)
	require.LessOrEqual(t, memory, mostMemory, name)
}
