package soak

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// SampleEvery is the time between two samples of a process.
const SampleEvery = 5 * time.Second

// Sample is what a process uses at a moment.
type Sample struct {
	At          time.Time `json:"at"`
	RSS         int64     `json:"rss"` // bytes
	Goroutines  int       `json:"goroutines"`
	Descriptors int       `json:"descriptors"`
}

// SampleSelf reads what this process uses from /proc; the goroutines are left to the caller.
// It fails where there is no /proc.
func SampleSelf(now time.Time) (Sample, error) {
	status, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return Sample{}, fmt.Errorf("sample: %w", err)
	}
	fields := strings.Fields(string(status))
	if len(fields) < 2 {
		return Sample{}, fmt.Errorf("sample: /proc/self/statm holds %q", status)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return Sample{}, fmt.Errorf("sample: %w", err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return Sample{}, fmt.Errorf("sample: %w", err)
	}
	return Sample{At: now, RSS: pages * int64(os.Getpagesize()), Descriptors: len(open) - 1}, nil // one is the one of the reading
}

// ReadSamples reads samples that were written one a line.
func ReadSamples(path string) ([]Sample, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	defer f.Close()
	var samples []Sample
	for scan := bufio.NewScanner(f); scan.Scan(); {
		var s Sample
		if err := json.Unmarshal(scan.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("samples: line %d: %w", len(samples)+1, err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}
