//go:build unix

package harness_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
)

// It runs alone, before the parallel tests begin.
func TestAbandonedResourcesAreFound(t *testing.T) { //nolint:paralleltest // measures the process
	before, err := harness.Use()
	require.NoError(t, err)
	settled := func(limit time.Duration) []oneturntest.Violation {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return before.Settled(ctx)
	}
	require.Empty(t, settled(time.Second))

	release := make(chan struct{})
	go func() { <-release }()
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	mark := "ONETURNTEST_MARK=" + strconv.Itoa(os.Getpid())
	child := oneturntest.StartProcess(t, "wait", mark)
	found := settled(50 * time.Millisecond)
	require.Len(t, found, 3, "%v", found)
	for _, v := range found {
		require.Equal(t, "I10", v.Invariant)
	}
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Len(t, harness.Orphans(brief, mark), 1)

	close(release)
	require.NoError(t, file.Close())
	require.NoError(t, child.Stop(10*time.Second))
	require.Empty(t, settled(10*time.Second))
	long, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.Empty(t, harness.Orphans(long, mark))
}
