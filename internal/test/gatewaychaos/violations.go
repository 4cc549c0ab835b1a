package gatewaychaos

import (
	"fmt"
	"slices"
	"sync"
)

// Verdict collects violations. It is safe for concurrent use.
type Verdict struct {
	mu    sync.Mutex
	found []string
}

// Brokenf notes a violation of an invariant, "G1" to "G6".
func (v *Verdict) Brokenf(invariant, format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found = append(v.found, invariant+" "+fmt.Sprintf(format, args...))
}

// Violations returns what was noted so far.
func (v *Verdict) Violations() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.found)
}
