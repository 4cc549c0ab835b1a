package memory_test

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/internal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	memory.Pace(os.LookupEnv, memory.ContainerLimit)
	// Output:
}

// TestPaceFollowsTheContainerAndTheEnvironment changes settings of the process, one after the
// other.
func TestPaceFollowsTheContainerAndTheEnvironment(t *testing.T) { //nolint:paralleltest // see above
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	for _, c := range []struct {
		name    string
		file    string
		env     map[string]string
		percent int
		limit   int64
	}{
		{name: "container", file: "1000000000\n", percent: memory.Percent, limit: 500_000_000},
		{name: "container without limit", file: "max\n", percent: memory.Percent, limit: math.MaxInt64},
		{name: "no container", percent: memory.Percent, limit: math.MaxInt64},
		{name: "environment", file: "1000000000\n", env: map[string]string{"GOGC": "50", "GOMEMLIMIT": "1GiB"}, percent: 77, limit: 1 << 40},
	} {
		debug.SetGCPercent(77)
		debug.SetMemoryLimit(1 << 40)
		file := filepath.Join(t.TempDir(), "memory.max")
		if c.file != "" {
			require.NoError(t, os.WriteFile(file, []byte(c.file), 0o600))
		}
		memory.Pace(func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }, file)
		require.Equal(t, c.percent, debug.SetGCPercent(100), c.name)
		require.Equal(t, c.limit, debug.SetMemoryLimit(-1), c.name)

		if c.env == nil {
			memory.PaceConnections(func(string) (string, bool) { return "", false }, file)
			require.Equal(t, memory.ConnectionsPercent, debug.SetGCPercent(100), c.name)
			require.Equal(t, c.limit, debug.SetMemoryLimit(-1), c.name)
		}
	}
}
