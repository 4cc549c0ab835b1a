//go:build chaos || soak

package chaos_test

import (
	"fmt"
	"os"

	"github.com/stretchr/testify/require"
)

// mostDescriptors is what a worker may have open at rest: its connection, its files, and what
// the runtime needs.
const mostDescriptors = 32

// leaksNothing holds the descriptors that workers have open at rest against that. Goroutines
// are counted by the worker itself when it has ended.
func (r *rig) leaksNothing() {
	r.Helper()
	for _, w := range r.workers {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.PID()))
		if err != nil {
			return // not Linux
		}
		require.LessOrEqual(r.T, len(open), mostDescriptors, "descriptors of worker %d after %v", w.PID(), r.strikes)
	}
}
