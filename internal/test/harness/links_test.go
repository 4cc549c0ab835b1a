//go:build unix

package harness_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
)

// TestLinkedClusterLosesOnlyTheServerThatIsCutOff: the others elect a leader, the one that is
// alone stores nothing, and after the heal all have what the others stored.
func TestLinkedClusterLosesOnlyTheServerThatIsCutOff(t *testing.T) {
	t.Parallel()
	c := harness.NewLinkedCluster(t, "")
	c.Provision()
	alone := c.StreamLeader("KV_ONETURN_TURNS")
	put := func(n *harness.Node, key string) error {
		nc, err := nats.Connect(n.URL())
		require.NoError(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Second))
		require.NoError(t, err)
		_, err = js.Publish(t.Context(), "$KV.ONETURN_TURNS."+key, nil)
		return err
	}
	require.NoError(t, put(alone, "e.before"))
	c.Isolate(alone)
	require.Error(t, put(alone, "e.alone"))
	require.Eventually(t, func() bool { return put(c.Others(alone)[0], "e.others") == nil }, time.Minute, 50*time.Millisecond)
	require.Error(t, put(alone, "e.alone"))
	c.Heal()
	require.Eventually(t, func() bool { return put(alone, "e.after") == nil }, time.Minute, 50*time.Millisecond)

	c.Reject(alone)
	require.Error(t, put(alone, "e.alone"))
	c.Heal()
	require.Eventually(t, func() bool { return put(alone, "e.again") == nil }, time.Minute, 50*time.Millisecond)
}
