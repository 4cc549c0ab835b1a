//go:build chaos

package chaos_test

import (
	"fmt"
	"os"
	"time"

	"github.com/stretchr/testify/require"
)

// mostDescriptors is what a worker may have open at rest: its connection, its files, and what
// the runtime needs.
const mostDescriptors = 32

// leaksNothing checks the descriptors that workers have open at rest against that. What a worker still closes is not a leak: a leak stays. Goroutines are counted by the worker itself when it
// has ended.
func (r *rig) leaksNothing() {
	r.Helper()
	for _, w := range r.workers {
		folder := fmt.Sprintf("/proc/%d/fd", w.PID())
		if _, err := os.Stat(folder); err != nil {
			return // not Linux
		}
		require.Eventually(r.T, func() bool {
			entries, err := os.ReadDir(folder)
			return err == nil && len(entries) <= mostDescriptors
		}, 10*time.Second, 100*time.Millisecond, "more than %d descriptors of worker %d after %v", mostDescriptors, w.PID(), r.strikes)
	}
}
