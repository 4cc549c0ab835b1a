//go:build failpoints

package crash_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/subjects"
)

// TestCancelStoredBeforeTheClaimHoldsForTheNextOwner: a worker has stored a cancel and dies
// before it has claimed the turn. Another one, which was not there when subscribers heard of the
// cancel, claims the turn and dies in its tool. The next owner must not enter it again.
func TestCancelStoredBeforeTheClaimHoldsForTheNextOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.slots = 1
	turn := oneturn.TurnID{App: "app", Chat: "chat-1", Turn: "idempotent-1"} // the first that publish makes
	canceller := r.start(failpoint.Claim + "=drop_req@*")
	_, err := r.client.Cancel(t.Context(), &oneturn.Cancel{TurnID: turn, Workflow: "Crash"})
	require.NoError(t, err)
	kv, err := kvstore.Open(r.server.Connect(), r.space)
	require.NoError(t, err)
	t.Cleanup(kv.Close)
	key := subjects.TurnKey(turn.App, turn.Chat, "", turn.Turn)
	require.Eventually(t, func() bool {
		_, err := kv.Last(t.Context(), key.Public(events.KindCancel))
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)

	owner := r.start(inTool + "=kill@1")
	r.publish(1, []string{"idempotent"}, 5, false)
	r.accepted[0].MayFail = true
	require.True(t, r.wait(owner, func() bool { return false }), "the owner has to die in its tool")
	require.NoError(t, canceller.cmd.Process.Kill())
	require.True(t, r.wait(canceller, func() bool { return false }))
	r.settle()
	require.Equal(t, 1, r.entered())
}
