package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tool"
)

// F04: a tool ignores the end of its context and returns when its turn has long ended. The
// outcome stays, and the late return is counted.
func TestToolThatReturnsAfterItsTimeoutChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	release := make(chan struct{})
	deaf := oneturn.NewTool("deaf", func(ctx context.Context, _ work) (string, error) {
		call := tool.Info(ctx)
		if err := r.ledger.Enter(call); err != nil {
			return "", err
		}
		<-release
		return "late", r.ledger.Exit(call)
	}, oneturn.ToolOptions{Workflow: "Work", Agent: "Agent_unsafe", Model: "Work", Timeout: 50 * time.Millisecond})
	r.start(oneturn.Config{Tools: []oneturn.Tool{deaf}})
	one := turn("Work", "chat", "t", "unsafe", 0)
	r.publish(one, true)
	first := r.await(one.TurnID)
	require.Equal(t, events.CodeTimeout, first.Code)
	require.Equal(t, 1, r.metric("oneturn_abandoned_tools_total"))
	require.Zero(t, r.metric("oneturn_late_results_total"))
	close(release)
	require.Eventually(t, func() bool { return r.metric("oneturn_late_results_total") == 1 }, 10*time.Second, time.Millisecond)
	require.Contains(t, r.log.String(), "its result is dropped")
	r.settle(nil, one)
	require.Equal(t, first, r.await(one.TurnID))
	require.Equal(t, 1, r.entered(one.TurnID))
}
