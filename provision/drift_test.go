package provision_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/provision"
)

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

// edit changes a stream without provision.
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

// F19: a limit of the journal is one of them.
func TestDriftThatBreaksThePromiseIsFoundAndFixed(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	edit(t, js, "KV_ONETURN_TURNS", func(c *jetstream.StreamConfig) {
		c.RePublish = nil
		c.Discard = jetstream.DiscardOld
		c.MaxBytes = 1 << 30
	})
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	cfg := consumer.CachedInfo().Config
	cfg.MaxDeliver, cfg.AckWait = 5, time.Second
	_, err = js.UpdateConsumer(t.Context(), "ONETURN_IN", cfg)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "ONETURN_DEAD"))

	severity := map[string]diag.Severity{}
	for _, f := range findings(t, js, provision.Options{}) {
		severity[f.Object+" "+f.Setting] = f.Severity
		require.NotEmpty(t, f.Fix)
		require.Contains(t, f.String(), f.Object)
	}
	require.Equal(t, map[string]diag.Severity{
		"stream KV_ONETURN_TURNS republish":               diag.SeverityError,
		"stream KV_ONETURN_TURNS discard":                 diag.SeverityError,
		"stream KV_ONETURN_TURNS max_bytes":               diag.SeverityError,
		"consumer ONETURN_IN/workers-default max_deliver": diag.SeverityError,
		"consumer ONETURN_IN/workers-default ack_wait":    diag.SeverityInfo,
		"stream ONETURN_DEAD ":                            diag.SeverityError,
	}, severity)

	apply(t, js, provision.Options{})
	require.Empty(t, findings(t, js, provision.Options{}))
}

func TestWhatWasProvisionedOtherwiseIsNotAnError(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{AckWait: 5 * time.Second, Retention: 20 * 24 * time.Hour, InMaxBytes: 64 << 20})
	found := findings(t, js, provision.Options{})
	require.Len(t, found, 5) // of blobs and timers too
	for _, f := range found {
		require.Equal(t, diag.SeverityInfo, f.Severity, f)
		require.Contains(t, f.Fix, "it is not the default: no action if intended")
		require.NotContains(t, f.Fix, "run turnctl provision")
	}
}

// TestInboundStreamWithALongDuplicateWindowIsFoundAndFixed: as on servers that were provisioned before it was short.
func TestInboundStreamWithALongDuplicateWindowIsFoundAndFixed(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	edit(t, js, "ONETURN_IN", func(c *jetstream.StreamConfig) { c.Duplicates = 2 * time.Minute })
	found := findings(t, js, provision.Options{})
	require.Len(t, found, 1)
	require.Equal(t, diag.SeverityInfo, found[0].Severity)
	require.Contains(t, found[0].Fix, "run turnctl provision")
	require.Equal(t, []string{"duplicate_window 2m0s → 1s"}, apply(t, js, provision.Options{})["stream ONETURN_IN"].Details)
	require.Empty(t, findings(t, js, provision.Options{}))
}

// TestInboundStreamForgetsMessageIDsSoon: they are kept in memory, and their senders choose them.
func TestInboundStreamForgetsMessageIDsSoon(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	require.Eventually(t, func() bool {
		ack, err := js.Publish(t.Context(), "oneturn.in.default.cancel.a.w.c", nil, jetstream.WithMsgID("id"))
		require.NoError(t, err)
		return !ack.Duplicate && ack.Sequence > 1
	}, 10*time.Second, 10*time.Millisecond)
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
	require.Equal(t, diag.SeverityInfo, maxAge(provision.Options{}).Severity)
	worse := maxAge(provision.Options{MaxTurnLife: 8 * 24 * time.Hour, Retention: 10 * 24 * time.Hour})
	require.Equal(t, diag.SeverityError, worse.Severity)
	require.Contains(t, worse.Fix, "192h0m0s")
}
