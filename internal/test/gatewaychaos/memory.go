package gatewaychaos

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Memory is the resident memory of one process over time. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at    time.Time
	bytes uint64
}

// Bounds of the growth from the first half of a run to the second: a quarter, and some memory for a garbage collection that is due.
// Anything that grows with time, with chats or with lost connections exceeds them.
const (
	maxGrowth      = 1.25
	maxGrowthBytes = 16 << 20
)

// Add adds a sample of the resident memory, in bytes.
func (m *Memory) Add(at time.Time, bytes uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, sample{at, bytes})
}

// Halves returns the median memory, in bytes, of the first and of the second half after the warm-up ended at warm; zeros if there are
// fewer than four samples.
func (m *Memory) Halves(warm time.Time) (first, second uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []uint64
	for _, s := range m.samples {
		if !s.at.Before(warm) {
			all = append(all, s.bytes)
		}
	}
	const fewest = 4
	if len(all) < fewest {
		return 0, 0
	}
	return median(all[:len(all)/2]), median(all[len(all)/2:])
}

// Check notes a violation of G3 if the memory has grown since warm, or if there are too few samples.
func (m *Memory) Check(name string, warm time.Time, v *Verdict) {
	first, second := m.Halves(warm)
	if first == 0 {
		v.Brokenf("G3", "%s: too few samples of its memory", name)
		return
	}
	if float64(second) > maxGrowth*float64(first)+maxGrowthBytes {
		v.Brokenf("G3", "%s: its memory has grown from %d to %d MiB", name, first>>20, second>>20)
	}
}

func median(of []uint64) uint64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// Resident returns the resident memory of a process in bytes, as /proc shows it.
func Resident(pid int) (uint64, error) {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, fmt.Errorf("memory: %w", err)
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0, fmt.Errorf("memory: %q", statm)
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("memory: %w", err)
	}
	return pages * uint64(os.Getpagesize()), nil
}
