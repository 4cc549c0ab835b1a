package limits_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/limits"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// onServer returns a limiter with a separate connection.
func onServer(t *testing.T, s *oneturntest.Server) (*limits.Limiter, jetstream.JetStream) {
	t.Helper()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	return limiter(t, limits.NewKV(js, space)), js
}

// daily is a rate whose burst nothing frees again while a test runs.
func daily(burst int) target.Limits {
	return target.Limits{Tenant: target.Limit{Rate: target.Rate{Calls: 20, Per: 24 * time.Hour, Burst: burst}}}
}

func TestWorkersOfOneServerShareARate(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	one, js := onServer(t, s)
	two, _ := onServer(t, s)
	const calls = 20
	b := newBegun()
	for range calls {
		b.call(t.Context(), one, "acme", daily(7))
		b.call(t.Context(), two, "acme", daily(7))
		b.call(t.Context(), two, "other", daily(3))
	}
	b.wg.Wait()
	require.Len(t, b.begins(), 7+3)
	require.Len(t, b.failures(), 3*calls-7-3)
	for _, err := range b.failures() {
		require.ErrorContains(t, err, "rate limit of tool for one tenant: 20 calls in 24h0m0s may begin; this one could in 1h")
	}

	// A schedule that is made unreadable or deleted begins again.
	kv, err := js.KeyValue(t.Context(), "ONETURN_LIMITS")
	require.NoError(t, err)
	key := subjects.LimitKey("tool", "acme", false)
	_, err = kv.PutString(t.Context(), key, "{")
	require.NoError(t, err)
	_, err = one.Wait(t.Context(), "tool", "acme", daily(1))
	require.NoError(t, err)
	_, err = two.Wait(t.Context(), "tool", "acme", daily(1))
	require.ErrorIs(t, err, events.ErrToolError)
	require.NoError(t, kv.Delete(t.Context(), key))
	_, err = two.Wait(t.Context(), "tool", "acme", daily(1))
	require.NoError(t, err)
}

func TestServerWithoutTheBucketServesToolsWithoutRates(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	l, _ := onServer(t, s)
	release, err := l.Wait(t.Context(), "tool", "acme", target.Limits{Tool: target.Limit{Concurrency: 1}})
	require.NoError(t, err)
	release()
	_, err = l.Wait(t.Context(), "tool", "acme", daily(1))
	require.ErrorContains(t, err, "rate limit of tool for one tenant: bucket ONETURN_LIMITS is missing: turnctl provision makes it")
	s.Provision()
	_, err = l.Wait(t.Context(), "tool", "acme", daily(1))
	require.NoError(t, err)
}

func TestServerThatIsAwayMakesCallsWait(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	l, js := onServer(t, s)
	js.Conn().Close()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBegun()
	b.call(ctx, l, "acme", daily(1))
	require.Eventually(t, func() bool { return l.Waiting() == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	b.wg.Wait()
	require.Equal(t, []error{context.Canceled}, b.failures())
}
