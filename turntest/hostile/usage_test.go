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
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu, memory := time.Hour, uint64(1<<62)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := threadCPU(t)
		f()
		cpu = min(cpu, threadCPU(t)-start)
		runtime.ReadMemStats(&after)
		memory = min(memory, after.TotalAlloc-before.TotalAlloc)
		if cpu <= maxCPU*slowdown && memory <= maxMemory {
			break
		}
	}
	t.Logf("%s: %s, %d kB", name, cpu, memory>>10)
	require.LessOrEqual(t, cpu, maxCPU*slowdown, name)
	require.LessOrEqual(t, memory, uint64(maxMemory), name)
}
