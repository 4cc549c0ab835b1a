package hostile_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The budget of one message or manifest. 100 ms is what five documents of a megabyte cost
// encoding/json, so that is the measure: it is taken next to f, and what a busy or slow machine
// and the race detector add, they add to both.
const (
	maxDocuments = 5
	maxMemory    = 64 << 20 // bytes allocated, whether or not they are in use at the same time
)

// document is a megabyte of JSON.
var document = []byte(`[` + strings.Repeat(`{"k":"some text","n":12345,"l":[1,2,3,true,null]},`, 20_000) + `1]`)

// within runs f and holds it to the budget.
func within(t *testing.T, name string, f func()) {
	t.Helper()
	withinTimes(t, 1, threadCPU, name, f)
}

// withinTimes is within for n times the budget, and by another clock: processCPU is for what starts goroutines. The best of a few counts: a collection of garbage is not f's.
func withinTimes(t *testing.T, n int, clock func(*testing.T) time.Duration, name string, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cost := func(f func()) (cpu time.Duration, memory uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := clock(t)
		f()
		cpu = clock(t) - start
		runtime.ReadMemStats(&after)
		return cpu, after.TotalAlloc - before.TotalAlloc
	}
	mostMemory := uint64(n) * maxMemory
	cpu, memory := time.Hour, uint64(1<<62)
	var mostCPU time.Duration
	for range 5 {
		one, _ := cost(func() {
			var v any
			if err := json.Unmarshal(document, &v); err != nil {
				t.Error(err)
			}
		})
		c, m := cost(f)
		mostCPU = max(mostCPU, time.Duration(n)*maxDocuments*one)
		cpu, memory = min(cpu, c), min(memory, m)
		if cpu <= mostCPU && memory <= mostMemory {
			break
		}
	}
	t.Logf("%s: %s of %s, %d kB", name, cpu, mostCPU, memory>>10)
	require.LessOrEqual(t, cpu, mostCPU, name)
	require.LessOrEqual(t, memory, mostMemory, name)
}
