package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used since it began.
type usage struct {
	CPU    time.Duration `json:"cpu"`    // user and system time
	Allocs uint64        `json:"allocs"` // heap objects
	Bytes  uint64        `json:"bytes"`  // of heap allocated
	Heap   uint64        `json:"heap"`   // bytes of objects on the heap; the live ones after settle
	RSS    int64         `json:"rss"`    // bytes resident now; 0 where /proc does not report it
	Peak   int64         `json:"peak"`   // the most that was ever resident, likewise
}

func readUsage() usage {
	u := usage{CPU: cpuTime(), RSS: memoryOf("VmRSS:"), Peak: memoryOf("VmHWM:")}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Allocs, u.Bytes, u.Heap = m.Mallocs, m.TotalAlloc, m.HeapAlloc
	return u
}

// memoryOf reads a size of this process from /proc, in bytes.
func memoryOf(field string) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), field)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
