package oneturn_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/tools/target"
	"github.com/oneturn/oneturn/turntest"
)

func TestOnlyAWorkerWithARateNeedsTheBucketOfRates(t *testing.T) {
	t.Parallel()
	s := turntest.NewServer(t)
	s.Provision()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_LIMITS")) // provisioned before there was one
	run := func(limits target.Limits) error {
		w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{SoftStop: time.Millisecond, Tools: []oneturn.Tool{
			oneturn.NewTool("t", func(context.Context, struct{}) (string, error) { return "", nil }, oneturn.For("Shop", "A", "M"), oneturn.WithLimits(limits)),
		}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		require.Eventually(t, func() bool {
			if len(ended) == 0 && w.Ready() == nil {
				cancel()
			}
			return len(ended) > 0
		}, 20*time.Second, 5*time.Millisecond)
		return <-ended
	}
	require.NoError(t, run(target.Limits{Tool: target.Limit{Concurrency: 1}}))
	rate := target.Limits{Tenant: target.Limit{Rate: target.Rate{Calls: 1, Per: time.Second}}}
	require.ErrorContains(t, run(rate), "tool t of workflow Shop has a rate limit: bucket ONETURN_LIMITS is missing: turnctl provision makes it")
	s.Provision()
	require.NoError(t, run(rate))
}
