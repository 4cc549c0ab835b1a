package provision_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/provision"
)

func TestReplicasWithoutClusterAreRefusedWithTheFix(t *testing.T) {
	t.Parallel()
	plan, err := provision.New(provision.Options{Replicas: 3})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), server(t), plan)
	require.ErrorContains(t, err, "this server is not a cluster and holds one copy of each record: use --replicas 1")
}

func TestServerWithoutRoomIsRefusedWithTheFixOfEachCommand(t *testing.T) {
	t.Parallel()
	js := serverOf(t, embedded.Options{Store: t.TempDir(), MaxStore: 1 << 20})
	_, err := provision.Apply(t.Context(), js, plan(t, provision.Options{}))
	require.ErrorContains(t, err, "make room on its disk, or raise its storage limit (of an embedded server: worker --store-max)")
	require.ErrorContains(t, err, "turnctl provision takes smaller streams with --in-max-bytes")
}

func TestDestructiveChangesAreRefusedBeforeAnythingChanges(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first, then provision.Options
		want        string
	}{
		"shorter journal": {
			provision.Options{},
			provision.Options{AckWait: time.Minute, Retention: 200 * time.Hour},
			"stream KV_ONETURN_TURNS: max_age 216h0m0s → 200h0m0s",
		},
		"younger dead letters": {
			provision.Options{},
			provision.Options{AckWait: time.Minute, DeadAge: time.Hour},
			"stream ONETURN_DEAD: max_age",
		},
		"less room for dead letters": {
			provision.Options{},
			provision.Options{AckWait: time.Minute, DeadMaxBytes: 1 << 20},
			"stream ONETURN_DEAD: max_bytes",
		},
		"memory instead of file": {
			provision.Options{},
			provision.Options{AckWait: time.Minute, Memory: true},
			"stream ONETURN_IN: storage File → Memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := server(t)
			apply(t, js, tc.first)
			changes, err := provision.Apply(t.Context(), js, plan(t, tc.then))
			require.ErrorIs(t, err, provision.ErrRefused)
			require.ErrorContains(t, err, tc.want)
			require.Empty(t, changes)
			require.Empty(t, findings(t, js, tc.first), "nothing was changed")
		})
	}
}

func TestForeignStreamAndConsumerAreRefused(t *testing.T) {
	t.Parallel()
	js := server(t)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "ONETURN_TIMERS", Subjects: []string{"theirs.>", "oneturn.due.>"}, Retention: jetstream.InterestPolicy,
	})
	require.NoError(t, err)
	_, err = js.CreateConsumer(t.Context(), "ONETURN_TIMERS", jetstream.ConsumerConfig{
		Durable: "timers", FilterSubject: "theirs.a", AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, plan(t, provision.Options{}))
	require.ErrorIs(t, err, provision.ErrRefused)
	require.ErrorContains(t, err, "retention Interest → WorkQueue")
	require.ErrorContains(t, err, "subjects [theirs.> oneturn.due.>]")
	require.ErrorContains(t, err, "filter_subject theirs.a → oneturn.due.>")
	_, err = js.Stream(t.Context(), "ONETURN_IN")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}

// F17: see docs/faults.md.
func TestLostJournalIsNotRecreatedWhileTurnsWait(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	require.NoError(t, js.DeleteKeyValue(t.Context(), "ONETURN_TURNS"))
	_, err := provision.Apply(t.Context(), js, plan(t, provision.Options{}))
	require.ErrorIs(t, err, provision.ErrRefused)
	require.ErrorContains(t, err, "KV_ONETURN_TURNS is gone")

	require.NoError(t, js.DeleteStream(t.Context(), "ONETURN_IN"))
	require.Equal(t, provision.Created, apply(t, js, provision.Options{})["stream KV_ONETURN_TURNS"].Action)
}
