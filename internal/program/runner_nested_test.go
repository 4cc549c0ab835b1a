package program_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/flow"
)

func TestCallsThatRunWithANestedProgramThatMayStartNothingMoreEnd(t *testing.T) {
	t.Parallel()
	var refused error
	runs(t, row(flow.KindPlan, "a", "b"), func(nested *running) {
		synctest.Wait()
		nested.steps.mu.Lock()
		nested.steps.refuse = errLost
		nested.steps.mu.Unlock()
		nested.succeeds("a", nil)
		refused = nested.err
	})
	runs(t, fan(flow.MergeCollect, 3, "x", "y"), func(r *running) {
		r.errs("x", refused)
		require.False(t, r.over, "y runs")
		r.succeeds("y", nil)
		require.ErrorIs(t, r.err, errLost)
		require.Contains(t, r.Ends, "y")
		require.Equal(t, []string{"x", "y"}, r.begun())
	})
}
