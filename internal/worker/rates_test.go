package worker_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestOnlyAWorkerWithARateNeedsTheBucketOfRates(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "KV_ONETURN_LIMITS")) // provisioned before there was one
	run := func(limits oneturn.Limits) error {
		w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{SoftStop: time.Millisecond, Tools: []oneturn.Tool{
			oneturn.NewTool("t", func(context.Context, struct{}) (string, error) { return "", nil }, oneturn.ToolOptions{Workflow: "Shop", Agent: "A", Model: "M", Limits: limits}),
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
	require.NoError(t, run(oneturn.Limits{Tool: oneturn.Limit{Concurrency: 1}}))
	rate := oneturn.Limits{Tenant: oneturn.Limit{Rate: oneturn.Rate{Calls: 1, Per: time.Second}}}
	require.ErrorContains(t, run(rate), "tool t of workflow Shop has a rate limit: bucket ONETURN_LIMITS is missing: turnctl provision makes it")
	s.Provision()
	require.NoError(t, run(rate))
}

func TestCallsThatWaitForALimitAreCounted(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	registry, entered, goOn := prometheus.NewRegistry(), make(chan struct{}, 2), make(chan struct{})
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{SoftStop: time.Minute, Registry: registry, Tools: []oneturn.Tool{
		oneturn.NewTool("t", func(context.Context, struct{}) (string, error) {
			entered <- struct{}{}
			<-goOn
			return "done", nil
		}, oneturn.ToolOptions{Workflow: "Shop", Agent: "A", Model: "M", Limits: oneturn.Limits{Tool: oneturn.Limit{Concurrency: 1}}}),
	}})
	require.NoError(t, err)
	require.Zero(t, gauge(t, registry, "oneturn_limit_waiting"), "a worker that does not run yet")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all errgroup.Group
	all.Go(func() error { return w.Run(ctx) })
	client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	var calls errgroup.Group
	for i := range 2 {
		calls.Go(func() error {
			_, err := client.Do(t.Context(), &oneturn.Turn{
				TurnID: oneturn.TurnID{App: "acme", Chat: "c", Turn: strconv.Itoa(i)}, Workflow: "Shop", Agent: "A", Model: "M", Data: map[string]any{},
			})
			return err
		})
	}
	<-entered
	waiting := func() bool { return gauge(t, registry, "oneturn_limit_waiting") == 1 }
	require.Eventually(t, waiting, 20*time.Second, 5*time.Millisecond)
	close(goOn)
	require.NoError(t, calls.Wait())
	require.Zero(t, gauge(t, registry, "oneturn_limit_waiting"))
	cancel()
	require.NoError(t, all.Wait())
}

func TestWorkersShareARateAndReportWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var workers errgroup.Group
	for range 2 {
		w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{SoftStop: time.Millisecond, Tools: []oneturn.Tool{
			oneturn.NewTool("t", func(context.Context, struct{}) (string, error) { return "done", nil }, oneturn.ToolOptions{
				Workflow: "Shop", Agent: "A", Model: "M",
				Limits: oneturn.Limits{Tool: oneturn.Limit{Rate: oneturn.Rate{Calls: 10, Per: 24 * time.Hour, Burst: 3}}},
			}),
		}})
		require.NoError(t, err)
		workers.Go(func() error { return w.Run(ctx) })
	}
	client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	const turns = 8
	responses := make([]*oneturn.Response, turns)
	var calls errgroup.Group
	for i := range responses {
		calls.Go(func() (err error) {
			responses[i], err = client.Do(t.Context(), &oneturn.Turn{
				TurnID: oneturn.TurnID{App: "acme", Chat: "c", Turn: strconv.Itoa(i)}, Workflow: "Shop", Agent: "A", Model: "M", Data: map[string]any{},
			})
			return err
		})
	}
	require.NoError(t, calls.Wait())
	ran := 0
	for _, r := range responses {
		if r.Success {
			ran++
			continue
		}
		require.Equal(t, events.CodeToolError, r.Code)
		require.Zero(t, r.Attempts)
		require.Regexp(t, `rate limit of Shop/t: 10 calls in 24h0m0s may begin; this one could in (2h24m0s|2h23m.*), which is later than it waits: try again then`, r.Content)
	}
	require.Equal(t, 3, ran)
	cancel()
	require.NoError(t, workers.Wait())
}
