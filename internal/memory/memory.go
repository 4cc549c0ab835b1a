// Package memory sets the pace of the garbage collector for workers and gateways. A turn
// leaves much garbage and a worker keeps little alive, so that the runtime's default collects
// dozens of times a second: a fifth of the worker's CPU.
package memory

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// Percent is how much the heap grows between collections, in percent of what is alive. The
// runtime's default is 100.
const Percent = 400

// share of a container's memory that the heap may fill before the collector works harder: the
// rest is for what is not Go, such as Python processes.
const share = 0.5

// ContainerLimit is the file that holds the memory limit of a container (cgroup v2).
const ContainerLimit = "/sys/fs/cgroup/memory.max"

// ConnectionsPercent is what Percent is, for a process with many connections: they keep much alive and leave little garbage.
const ConnectionsPercent = 50

// Pace sets the pace of the collector. GOGC and GOMEMLIMIT, where lookup finds them, win. A
// limit of half the container's memory goes with it when limitFile names one, so that a heap
// of any size stays within the container.
func Pace(lookup func(string) (string, bool), limitFile string) { pace(Percent, lookup, limitFile) }

// PaceConnections is [Pace] with [ConnectionsPercent].
func PaceConnections(lookup func(string) (string, bool), limitFile string) {
	pace(ConnectionsPercent, lookup, limitFile)
}

func pace(percent int, lookup func(string) (string, bool), limitFile string) {
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(percent)
	}
	if _, set := lookup("GOMEMLIMIT"); !set {
		debug.SetMemoryLimit(limit(limitFile))
	}
}

// limit returns the bytes that the heap may fill by the file with the limit of the container,
// [math.MaxInt64] for no limit.
func limit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes <= 0 { // "max"
		return math.MaxInt64
	}
	return int64(float64(bytes) * share)
}
