//go:build unix

package harness_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/subjects"
)

// F11: TestClusterKeepsRecordsWhenItsLeaderIsKilled kills the leader of the journal: another one is
// elected, the records are there, and the killed server rejoins.
func TestClusterKeepsRecordsWhenItsLeaderIsKilled(t *testing.T) {
	t.Parallel()
	c := harness.NewCluster(t, 3, "")
	c.Provision()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	js, err := jetstream.New(c.Connect(), jetstream.WithDefaultTimeout(time.Second))
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), space.TurnsBucket())
	require.NoError(t, err)
	_, err = kv.Create(t.Context(), "k", []byte("v"))
	require.NoError(t, err)

	old := c.StreamLeader(space.TurnsStream())
	old.Kill()
	require.Eventually(t, func() bool {
		_, err := kv.Put(t.Context(), "l", []byte("w"))
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	require.NotEqual(t, old.Name(), c.StreamLeader(space.TurnsStream()).Name())
	require.NotNil(t, c.ConsumerLeader(space.InStream(), space.WorkerConsumer(subjects.DefaultPool)))
	old.Start()
	c.WaitReady()
	require.Eventually(t, func() bool { // the connection may be to the server that was killed
		entry, err := kv.Get(t.Context(), "k")
		return err == nil && string(entry.Value()) == "v"
	}, time.Minute, 20*time.Millisecond)
}

// F10: see docs/faults.md.
func TestSingleServerKeepsRecordsWhenItIsKilled(t *testing.T) {
	t.Parallel()
	c := harness.NewCluster(t, 1, t.TempDir())
	js, err := jetstream.New(c.Connect(), jetstream.WithDefaultTimeout(time.Second))
	require.NoError(t, err)
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	_, err = kv.Create(t.Context(), "k", []byte("v"))
	require.NoError(t, err)
	n := c.StreamLeader("KV_b")
	n.Kill()
	n.Start()
	c.WaitReady()
	require.Eventually(t, func() bool { // this connection is restored too
		_, err := kv.Get(t.Context(), "k")
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	n.Stop()
}
