package provision_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/provision"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func Example() {
	plan, err := provision.New(provision.Options{Pools: []string{"default", "gpu"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range plan.Streams {
		fmt.Println("stream", s.Name)
	}
	for _, c := range plan.Consumers {
		fmt.Println("consumer", c.Stream, c.Config.Durable)
	}
	// Output:
	// stream KV_ONETURN_TURNS
	// stream ONETURN_IN
	// stream ONETURN_TIMERS
	// stream KV_ONETURN_CONTEXT
	// stream OBJ_ONETURN_BLOBS
	// stream ONETURN_DEAD
	// consumer ONETURN_IN workers-default
	// consumer ONETURN_IN workers-gpu
	// consumer ONETURN_TIMERS timers
}

// server starts an embedded server and connects to it, both until the end of the test.
func server(t *testing.T) jetstream.JetStream {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Options{Listen: "127.0.0.1:0", Memory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Stop()) })
	nc, err := srv.Conn()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func plan(t *testing.T, opts provision.Options) provision.Plan {
	t.Helper()
	p, err := provision.New(opts)
	require.NoError(t, err)
	return p
}

// apply applies and returns the actions by object.
func apply(t *testing.T, js jetstream.JetStream, opts provision.Options) map[string]provision.Change {
	t.Helper()
	changes, err := provision.Apply(t.Context(), js, plan(t, opts))
	require.NoError(t, err)
	byObject := map[string]provision.Change{}
	for _, c := range changes {
		byObject[c.Object] = c
	}
	require.Len(t, byObject, len(changes))
	return byObject
}

func findings(t *testing.T, js jetstream.JetStream, opts provision.Options) []provision.Finding {
	t.Helper()
	found, err := provision.Check(t.Context(), js, plan(t, opts))
	require.NoError(t, err)
	return found
}

func TestApplyCreatesEverythingOnceAndThenLeavesItAlone(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]provision.Options{
		"file":   {},
		"memory": {Memory: true, Pools: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := server(t)
			for _, f := range findings(t, js, opts) {
				require.Equal(t, provision.Broken, f.Severity)
				require.Equal(t, "missing", f.Have)
			}
			for object, change := range apply(t, js, opts) {
				require.Equal(t, provision.Created, change.Action, object)
			}
			require.Empty(t, findings(t, js, opts))
			for object, change := range apply(t, js, opts) {
				require.Equal(t, provision.Unchanged, change.Action, "%s %v", object, change.Details)
			}
		})
	}
}

func TestBucketsAreWhatTheClientWouldMake(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})

	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
		Bucket:      "ONETURN_TURNS",
		Description: "oneturn: journal and event log of all turns",
		TTL:         provision.DefaultRetention,
		RePublish:   &jetstream.RePublish{Source: "$KV.ONETURN_TURNS.e.>", Destination: "oneturn.events.>"},
	})
	require.NoError(t, err, "the same bucket is accepted, another one would be refused")
	status, err := kv.Status(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, status.History())

	blobs, err := js.ObjectStore(t.Context(), "ONETURN_BLOBS")
	require.NoError(t, err)
	_, err = blobs.PutBytes(t.Context(), "b", make([]byte, 300<<10))
	require.NoError(t, err)
	got, err := blobs.GetBytes(t.Context(), "b")
	require.NoError(t, err)
	require.Len(t, got, 300<<10)
}

func TestPublicRecordsAreRepublishedAndPrivateOnesAreNot(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	sub, err := js.Conn().SubscribeSync("oneturn.>")
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), "ONETURN_TURNS")
	require.NoError(t, err)
	_, err = kv.Create(t.Context(), "p.a.b.c.0.park.1", []byte("private"))
	require.NoError(t, err)
	revision, err := kv.Create(t.Context(), "e.a.b.c.0.tool_call", []byte("public"))
	require.NoError(t, err)
	_, err = kv.Create(t.Context(), "e.a.b.c.0.tool_call", []byte("lost the claim"))
	require.ErrorIs(t, err, jetstream.ErrKeyExists)
	_, err = kv.Create(t.Context(), "e.a.b.c.0.tool_response", []byte("second"))
	require.NoError(t, err)

	for i, want := range []string{"public", "second"} {
		msg, err := sub.NextMsgWithContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, string(msg.Data))
		require.Equal(t, strconv.Itoa(int(revision)+i), msg.Header.Get("Nats-Sequence"))
		if i == 0 {
			require.Equal(t, "oneturn.events.a.b.c.0.tool_call", msg.Subject)
		}
	}
}

func TestEachPoolGetsItsOwnMessages(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{Pools: []string{"default", "gpu"}})
	_, err := js.Publish(t.Context(), "oneturn.in.gpu.structured_output_ready.a.w.c", []byte("x"))
	require.NoError(t, err)
	for pool, pending := range map[string]uint64{"default": 0, "gpu": 1} {
		c, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-"+pool)
		require.NoError(t, err)
		require.Equal(t, pending, c.CachedInfo().NumPending, pool)
	}
}

func TestScheduleIsDeliveredWhenItIsDue(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	msg := nats.NewMsg("oneturn.timer.a")
	msg.Header.Set("Nats-Schedule", "@at "+time.Now().Add(-time.Second).UTC().Format(time.RFC3339))
	msg.Header.Set("Nats-Schedule-Target", "oneturn.due.a")
	msg.Data = []byte("due")
	_, err := js.PublishMsg(t.Context(), msg)
	require.NoError(t, err)
	consumer, err := js.Consumer(t.Context(), "ONETURN_TIMERS", "timers")
	require.NoError(t, err)
	got, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
	require.NoError(t, err)
	require.Equal(t, "oneturn.due.a", got.Subject())
	require.Equal(t, "due", string(got.Data()))
}

func TestChangedOptionsUpdateWhatTheyName(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	opts := provision.Options{
		AckWait: time.Minute, Retention: 20 * 24 * time.Hour, InMaxBytes: 64 << 20,
		Pools: []string{"default", "new"},
	}
	changes := apply(t, js, opts)
	require.Equal(t, provision.Change{
		Object: "consumer ONETURN_IN/workers-default", Action: provision.Updated, Details: []string{"ack_wait 30s → 1m0s"},
	}, changes["consumer ONETURN_IN/workers-default"])
	require.Equal(t, provision.Created, changes["consumer ONETURN_IN/workers-new"].Action)
	require.Equal(t, []string{"max_age 216h0m0s → 480h0m0s"}, changes["stream KV_ONETURN_TURNS"].Details)
	require.Equal(t, []string{"max_bytes 536870912 → 67108864"}, changes["stream ONETURN_IN"].Details)
	require.Equal(t, provision.Unchanged, changes["stream ONETURN_DEAD"].Action)

	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	require.Equal(t, time.Minute, consumer.CachedInfo().Config.AckWait)
	require.Empty(t, findings(t, js, opts))
}

// edit changes a stream behind the back of provision.
func edit(t *testing.T, js jetstream.JetStream, name string, change func(*jetstream.StreamConfig)) {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	change(&cfg)
	_, err = js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
}

func TestOperatorsOwnSettingsSurviveAnUpdate(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	edit(t, js, "ONETURN_DEAD", func(c *jetstream.StreamConfig) {
		c.Description = "ours"
		c.Metadata = map[string]string{"team": "blue"}
		c.Compression = jetstream.S2Compression
	})
	require.Empty(t, findings(t, js, provision.Options{}))
	require.Equal(t, provision.Updated, apply(t, js, provision.Options{DeadAge: 60 * 24 * time.Hour})["stream ONETURN_DEAD"].Action)
	stream, err := js.Stream(t.Context(), "ONETURN_DEAD")
	require.NoError(t, err)
	cfg := stream.CachedInfo().Config
	require.Equal(t, "ours", cfg.Description)
	require.Equal(t, "blue", cfg.Metadata["team"])
	require.Equal(t, jetstream.S2Compression, cfg.Compression)
}

func TestDriftThatBreaksThePromiseIsFoundAndMended(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	edit(t, js, "KV_ONETURN_TURNS", func(c *jetstream.StreamConfig) { c.RePublish = nil; c.Discard = jetstream.DiscardOld })
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	cfg := consumer.CachedInfo().Config
	cfg.MaxDeliver, cfg.AckWait = 5, time.Second
	_, err = js.UpdateConsumer(t.Context(), "ONETURN_IN", cfg)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "ONETURN_DEAD"))

	severity := map[string]provision.Severity{}
	for _, f := range findings(t, js, provision.Options{}) {
		severity[f.Object+" "+f.Setting] = f.Severity
		require.NotEmpty(t, f.Mend)
		require.Contains(t, f.String(), f.Object)
	}
	require.Equal(t, map[string]provision.Severity{
		"stream KV_ONETURN_TURNS republish":               provision.Broken,
		"stream KV_ONETURN_TURNS discard":                 provision.Broken,
		"consumer ONETURN_IN/workers-default max_deliver": provision.Broken,
		"consumer ONETURN_IN/workers-default ack_wait":    provision.Different,
		"stream ONETURN_DEAD ":                            provision.Broken,
	}, severity)

	apply(t, js, provision.Options{})
	require.Empty(t, findings(t, js, provision.Options{}))
}

func TestWhatWasProvisionedOtherwiseIsNotCalledAFault(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{AckWait: 5 * time.Second, Retention: 20 * 24 * time.Hour, InMaxBytes: 64 << 20})
	found := findings(t, js, provision.Options{})
	require.Len(t, found, 5) // of blobs and timers too
	for _, f := range found {
		require.Equal(t, provision.Different, f.Severity, f)
		require.Contains(t, f.Mend, "provisioned otherwise: nothing to do if it is meant")
		require.NotContains(t, f.Mend, "run turnctl provision")
	}
}

func TestReplicasWithoutClusterAreRefusedWithTheMend(t *testing.T) {
	t.Parallel()
	plan, err := provision.New(provision.Options{Replicas: 3})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), server(t), plan)
	require.ErrorContains(t, err, "this server is no cluster and holds one copy of each record: use --replicas 1")
}

func TestRetentionIsJudgedByWhatTurnsNeed(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{Retention: provision.MinRetention(provision.DefaultMaxTurnLife, provision.DefaultMaxEventAge)})
	maxAge := func(opts provision.Options) provision.Finding {
		for _, f := range findings(t, js, opts) {
			if f.Object == "stream KV_ONETURN_TURNS" && f.Setting == "max_age" {
				return f
			}
		}
		return provision.Finding{}
	}
	require.Equal(t, provision.Different, maxAge(provision.Options{}).Severity)
	worse := maxAge(provision.Options{MaxTurnLife: 8 * 24 * time.Hour, Retention: 10 * 24 * time.Hour})
	require.Equal(t, provision.Broken, worse.Severity)
	require.Contains(t, worse.Mend, "192h0m0s")
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

func TestLostJournalIsNotMadeAnewWhileTurnsWait(t *testing.T) {
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

func TestTierIsReadFromTheWeakerStream(t *testing.T) {
	t.Parallel()
	for want, tc := range map[string]struct {
		opts provision.Options
		sync provision.Sync
	}{
		"memory":      {provision.Options{Memory: true}, provision.SyncAlways},
		"embedded":    {provision.Options{}, provision.SyncLazy},
		"single":      {provision.Options{}, provision.SyncUnknown},
		"single-sync": {provision.Options{}, provision.SyncAlways},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			js := server(t)
			_, err := provision.ReadTier(t.Context(), js, plan(t, tc.opts), tc.sync)
			require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
			apply(t, js, tc.opts)
			tier, err := provision.ReadTier(t.Context(), js, plan(t, tc.opts), tc.sync)
			require.NoError(t, err)
			require.Equal(t, want, tier.Name)
		})
	}
}

func TestCancelledContextEndsApply(t *testing.T) {
	t.Parallel()
	js := server(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := provision.Apply(ctx, js, plan(t, provision.Options{}))
	require.ErrorIs(t, err, context.Canceled)
}

func TestClosedConnectionIsToldAsSuch(t *testing.T) {
	t.Parallel()
	js := server(t)
	js.Conn().Close()
	_, err := provision.Check(t.Context(), js, plan(t, provision.Options{}))
	require.Error(t, err)
}
