package provision_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/subjects"
)

func TestNamesFollowThePrefix(t *testing.T) {
	t.Parallel()
	space, err := subjects.New("acme.prod")
	require.NoError(t, err)
	for _, s := range plan(t, provision.Options{Space: space}).Streams {
		require.Contains(t, s.Name, "ACME_PROD_")
	}
}

// F19: see docs/faults.md.
func TestJournalHasNoSizeLimitAndInboundRefusesWhenFull(t *testing.T) {
	t.Parallel()
	streams := map[string]jetstream.StreamConfig{}
	for _, s := range plan(t, provision.Options{Replicas: 3}).Streams {
		streams[s.Name] = s
		require.Equal(t, 3, s.Replicas)
	}
	require.EqualValues(t, -1, streams["KV_ONETURN_TURNS"].MaxBytes)
	require.EqualValues(t, 1, streams["KV_ONETURN_TURNS"].MaxMsgsPerSubject)
	in := streams["ONETURN_IN"]
	require.Equal(t, jetstream.WorkQueuePolicy, in.Retention)
	require.Equal(t, jetstream.DiscardNew, in.Discard)
	require.Positive(t, in.MaxBytes)
	require.Zero(t, in.MaxAge)
	require.Equal(t, time.Second, in.Duplicates)
	require.Greater(t, streams["OBJ_ONETURN_BLOBS"].MaxAge, streams["KV_ONETURN_TURNS"].MaxAge)
}

func TestNoMessageIsEverGivenUpByTheServer(t *testing.T) {
	t.Parallel()
	p := plan(t, provision.Options{AckWait: 7 * time.Second})
	require.Len(t, p.Consumers, 2)
	for _, c := range p.Consumers {
		require.Equal(t, -1, c.Config.MaxDeliver)
		require.Empty(t, c.Config.BackOff)
		require.Equal(t, jetstream.AckExplicitPolicy, c.Config.AckPolicy)
		require.Equal(t, 7*time.Second, c.Config.AckWait)
		require.Equal(t, 20_000, c.Config.MaxAckPending)
	}
}

func TestAllWrongOptionsAreRefusedTogether(t *testing.T) {
	t.Parallel()
	_, err := provision.New(provision.Options{
		AckWait: time.Millisecond, Pools: []string{"a.b"}, Replicas: 2, InMaxBytes: 5, DeadMaxBytes: -2,
	})
	for _, want := range []string{"--ack-wait 1ms", "a.b", "--replicas 2", "--in-max-bytes 5", "--dead-max-bytes -2"} {
		require.ErrorContains(t, err, want)
	}
	require.Len(t, strings.Split(err.Error(), "\n"), 5)
}

func TestRetentionMustOutliveTurnsAndLateEvents(t *testing.T) {
	t.Parallel()
	least := 3*time.Hour + 2*time.Hour + time.Hour
	opts := provision.Options{MaxTurnLife: 3 * time.Hour, MaxEventAge: 2 * time.Hour, Retention: least}
	plan(t, opts)
	opts.Retention = least - time.Second
	_, err := provision.New(opts)
	require.ErrorContains(t, err, "--retention 6h0m0s")
}

func TestServerVersionsBelowTheLeastAreRefused(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"2.12.3": true, "2.12.10": true, "2.15.2": true, "3.0.0": true, "v2.13.0": true, "2.14.0-RC.1": true, "2.12.3+build": true,
		"2.12.2": false, "2.9.99": false, "1.99.99": false, "2.12.3-RC.2": false, "": false, "2": false, "a.b.c": false, "2.12": false,
	} {
		err := provision.CheckVersion(version)
		if ok {
			require.NoError(t, err, version)
			continue
		}
		require.ErrorIs(t, err, provision.ErrServerTooOld, version)
		require.ErrorContains(t, err, "2.12.3")
	}
}

func TestTierNeverPromisesWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	require.Equal(t, "cluster", provision.TierOf(false, 3, provision.SyncUnknown).Name)
	require.Contains(t, provision.TierOf(false, 3, provision.SyncUnknown).Text, "cannot be seen")
	require.Contains(t, provision.TierOf(false, 1, provision.SyncUnknown).Text, "cannot be seen")
	require.Equal(t, "cluster-sync", provision.TierOf(false, 3, provision.SyncAlways).Name)
	require.Equal(t, "memory", provision.TierOf(true, 3, provision.SyncAlways).Name)
}
