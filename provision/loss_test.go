package provision_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/provision"
)

// severities are the findings by object and setting.
func severities(found []provision.Finding) map[string]diag.Severity {
	all := map[string]diag.Severity{}
	for _, f := range found {
		all[f.Object+" "+f.Setting] = f.Severity
	}
	return all
}

// A limit that is a matter of taste for dead letters loses turns in the inbound stream.
func TestLimitsThatLoseWhatWasAcceptedAreFoundAndTakenAway(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	age := func(d time.Duration) func(*jetstream.StreamConfig) {
		return func(c *jetstream.StreamConfig) { c.MaxAge, c.Duplicates = d, min(d, c.Duplicates) }
	}
	edit(t, js, "ONETURN_IN", age(48*time.Hour))
	edit(t, js, "ONETURN_TIMERS", func(c *jetstream.StreamConfig) { c.MaxAge, c.MaxBytes = time.Hour, 1<<20 })
	edit(t, js, "OBJ_ONETURN_BLOBS", age(provision.DefaultRetention-time.Second))
	edit(t, js, "KV_ONETURN_LIMITS", age(time.Hour))
	edit(t, js, "KV_ONETURN_CONTEXT", age(240*time.Hour))
	edit(t, js, "ONETURN_DEAD", age(240*time.Hour))
	require.Equal(t, map[string]diag.Severity{
		"stream ONETURN_IN max_age":         diag.SeverityError,
		"stream ONETURN_TIMERS max_age":     diag.SeverityError,
		"stream ONETURN_TIMERS max_bytes":   diag.SeverityError,
		"stream OBJ_ONETURN_BLOBS max_age":  diag.SeverityError,
		"stream KV_ONETURN_LIMITS max_age":  diag.SeverityError,
		"stream KV_ONETURN_CONTEXT max_age": diag.SeverityInfo,
		"stream ONETURN_DEAD max_age":       diag.SeverityInfo,
	}, severities(findings(t, js, provision.Options{})))
	apply(t, js, provision.Options{})
	require.Empty(t, findings(t, js, provision.Options{}))
}

func TestPayloadsNeedOnlyOutliveTheJournal(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	edit(t, js, "OBJ_ONETURN_BLOBS", func(c *jetstream.StreamConfig) { c.MaxAge = provision.DefaultRetention })
	require.Equal(t, map[string]diag.Severity{"stream OBJ_ONETURN_BLOBS max_age": diag.SeverityInfo}, severities(findings(t, js, provision.Options{})))
	edit(t, js, "KV_ONETURN_TURNS", func(c *jetstream.StreamConfig) { c.MaxAge = 0 })
	require.Equal(t, diag.SeverityError, severities(findings(t, js, provision.Options{}))["stream OBJ_ONETURN_BLOBS max_age"])
}

// remade replaces the consumer of the default pool by one with a change.
func remade(t *testing.T, js jetstream.JetStream, change func(*jetstream.ConsumerConfig)) {
	t.Helper()
	consumer, err := js.Consumer(t.Context(), "ONETURN_IN", "workers-default")
	require.NoError(t, err)
	cfg := consumer.CachedInfo().Config
	require.Equal(t, provision.MaxWaiting, cfg.MaxWaiting)
	change(&cfg)
	require.NoError(t, js.DeleteConsumer(t.Context(), "ONETURN_IN", "workers-default"))
	_, err = js.CreateConsumer(t.Context(), "ONETURN_IN", cfg)
	require.NoError(t, err)
}

func TestConsumerThatRefusesPullsOrForgetsIsFound(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	remade(t, js, func(c *jetstream.ConsumerConfig) {
		c.MaxRequestBatch, c.MaxRequestExpires, c.MaxRequestMaxBytes, c.InactiveThreshold = 1, time.Second, 1, time.Hour
	})
	broken := map[string]diag.Severity{}
	for _, setting := range []string{"max_batch", "max_expires", "max_bytes", "inactive_threshold"} {
		broken["consumer ONETURN_IN/workers-default "+setting] = diag.SeverityError
	}
	require.Equal(t, broken, severities(findings(t, js, provision.Options{})))
	apply(t, js, provision.Options{})
	require.Empty(t, findings(t, js, provision.Options{}))
	remade(t, js, func(c *jetstream.ConsumerConfig) { c.MemoryStorage = true })
	require.Equal(t, map[string]diag.Severity{"consumer ONETURN_IN/workers-default mem_storage": diag.SeverityError}, severities(findings(t, js, provision.Options{})))
	plan, err := provision.New(provision.Options{})
	require.NoError(t, err)
	_, err = provision.Apply(t.Context(), js, plan)
	require.ErrorIs(t, err, provision.ErrRefused)
}

// The server never changes it, and workers of an older version run well with what they have.
func TestConsumerOfAnOlderVersionIsMentionedAndLeftAlone(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	remade(t, js, func(c *jetstream.ConsumerConfig) { c.MaxWaiting = 0 }) // the server's default of 512
	found := findings(t, js, provision.Options{})
	require.Equal(t, map[string]diag.Severity{"consumer ONETURN_IN/workers-default max_waiting": diag.SeverityInfo}, severities(found))
	require.Contains(t, found[0].Fix, "100 workers")
	require.Equal(t, provision.Unchanged, apply(t, js, provision.Options{})["consumer ONETURN_IN/workers-default"].Action)
	change := apply(t, js, provision.Options{AckWait: time.Minute})["consumer ONETURN_IN/workers-default"]
	require.Equal(t, []string{"ack_wait 30s → 1m0s"}, change.Details)
}

func TestWorkersRunOnAServerThatWasProvisionedForATrial(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{Memory: true})
	for setting, severity := range severities(findings(t, js, provision.Options{})) {
		require.Equal(t, diag.SeverityInfo, severity, setting)
	}
}

func TestShareOfDeadLettersFollowsTheirSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ maxBytes, want int64 }{{0, 500}, {-1, 500}, {1 << 30, 500}, {32 << 20, 136}, {1 << 20, 10}} {
		plan, err := provision.New(provision.Options{DeadMaxBytes: c.maxBytes})
		require.NoError(t, err)
		for _, s := range plan.Streams {
			if s.Name == "ONETURN_DEAD" {
				require.Equal(t, c.want, s.MaxMsgsPerSubject, "of %d bytes", c.maxBytes)
			}
		}
	}
}

func TestServerWithoutSharesOfDeadLettersIsUsableAndGetsThem(t *testing.T) {
	t.Parallel()
	js := server(t)
	apply(t, js, provision.Options{})
	edit(t, js, "ONETURN_DEAD", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 })
	found := findings(t, js, provision.Options{})
	require.Equal(t, map[string]diag.Severity{"stream ONETURN_DEAD max_msgs_per_subject": diag.SeverityInfo}, severities(found))
	require.Contains(t, found[0].Fix, "run turnctl provision")
	require.Equal(t, provision.Updated, apply(t, js, provision.Options{})["stream ONETURN_DEAD"].Action)
	require.Empty(t, findings(t, js, provision.Options{}))
	require.Equal(t, map[string]diag.Severity{
		"stream ONETURN_DEAD max_bytes": diag.SeverityInfo, "stream ONETURN_DEAD max_msgs_per_subject": diag.SeverityInfo,
	}, severities(findings(t, js, provision.Options{DeadMaxBytes: 64 << 20})))
}
