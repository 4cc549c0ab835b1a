//go:build !linux && !darwin && !freebsd && !windows

package embedded

import "math"

// freeBytes cannot tell on this system: all is taken for free.
func freeBytes(string) (int64, error) { return math.MaxInt64 / 2, nil }
