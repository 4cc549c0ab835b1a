//go:build !linux

package hostile_test

import (
	"testing"
	"time"
)

// threadCPU is the time of the clock: there is no other that every system has.
func threadCPU(*testing.T) time.Duration { return time.Since(started) }

func processCPU(*testing.T) time.Duration { return time.Since(started) }

var started = time.Now()
