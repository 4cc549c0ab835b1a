package subjects_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/subjects"
)

// TestSubjectOfAWorkflowNamesItsTokenAndPool: and nothing else is taken for one.
func TestSubjectOfAWorkflowNamesItsTokenAndPool(t *testing.T) {
	t.Parallel()
	s, err := subjects.New("a.b")
	require.NoError(t, err)
	require.Equal(t, "A_B_WORKFLOWS", s.WorkflowsBucket())
	subject := s.WorkflowSubject("Order.v2 *", "gpu")
	require.Equal(t, "$KV.A_B_WORKFLOWS.Order=2Ev2=20=2A.gpu", subject)
	require.True(t, matches(s.WorkflowSubjects(), subject))
	workflow, pool, ok := s.ParseWorkflow(subject)
	require.True(t, ok)
	require.Equal(t, subjects.Token("Order.v2 *"), workflow)
	require.Equal(t, "gpu", pool)
	for _, other := range []string{
		"", "Order.gpu", "$KV.A_B_WORKFLOWS", "$KV.A_B_WORKFLOWS.", "$KV.A_B_WORKFLOWS.Order", "$KV.A_B_WORKFLOWS.Order.", "$KV.A_B_WORKFLOWS..gpu",
		"$KV.A_B_WORKFLOWS.Order.gpu.more", "$KV.A_B_WORKFLOWS.Or=zzder.gpu", "$KV.A_B_WORKFLOWS.Order.=2D", "$KV.A_B_TURNS.Order.gpu",
	} {
		_, _, ok := s.ParseWorkflow(other)
		require.False(t, ok, other)
	}
}
