package provision_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/provision"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server starts an embedded server and connects to it, both until the end of the test.
func server(t *testing.T) jetstream.JetStream {
	t.Helper()
	return serverOf(t, embedded.Options{Memory: true})
}

func serverOf(t *testing.T, opts embedded.Options) jetstream.JetStream {
	t.Helper()
	opts.Listen = "127.0.0.1:0"
	srv, err := embedded.Start(t.Context(), opts)
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
				require.Equal(t, "missing", f.Have)
				want := diag.SeverityError
				if f.Object == "stream KV_ONETURN_LIMITS" || f.Object == "stream KV_ONETURN_WORKFLOWS" {
					want = diag.SeverityInfo // workers without a rate limit need no limits, and gateways alone the list of workflows
				}
				require.Equal(t, want, f.Severity, f.Object)
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

func TestServerProvisionedBeforeABucketWasAddedIsSound(t *testing.T) {
	t.Parallel()
	for _, added := range []string{"KV_ONETURN_LIMITS", "KV_ONETURN_WORKFLOWS"} {
		js := server(t)
		apply(t, js, provision.Options{})
		require.NoError(t, js.DeleteStream(t.Context(), added))
		found := findings(t, js, provision.Options{})
		require.Len(t, found, 1)
		require.Equal(t, diag.SeverityInfo, found[0].Severity)
		require.Contains(t, found[0].Fix, "turnctl provision adds it")
		for object, change := range apply(t, js, provision.Options{}) {
			require.Equal(t, map[bool]provision.Action{true: provision.Created, false: provision.Unchanged}[object == "stream "+added], change.Action, object)
		}
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
		require.Eventually(t, func() bool { // the server counts after it has acknowledged
			info, err := c.Info(t.Context())
			return err == nil && info.NumPending == pending
		}, 20*time.Second, time.Millisecond, pool)
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

func TestClosedConnectionIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	js := server(t)
	js.Conn().Close()
	_, err := provision.Check(t.Context(), js, plan(t, provision.Options{}))
	require.Error(t, err)
}
