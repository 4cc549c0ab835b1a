//go:build unix

package approval_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	approval "github.com/oneturn/oneturn/examples/02-approval"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// TestParkedPostIsPublishedByAWorker has the Go tool wait in a real worker, until its turn is
// parked; then a person answers.
func TestParkedPostIsPublishedByAWorker(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := oneturntest.NewServer(t)
	server.Provision()
	p, saved, published := press()
	worker, err := oneturn.NewWorker(server.Connect(), oneturn.Config{Tools: []oneturn.Tool{approval.Tool(p)}, ParkAfter: time.Millisecond})
	require.NoError(t, err)
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(working) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()

	nc := server.Connect()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	parked := make(chan struct{}, 2) // a second one comes at the end of the turn
	_, err = nc.Subscribe(space.Live("app", "chat", events.KindRunComplete), func(*nats.Msg) { parked <- struct{}{} })
	require.NoError(t, err)
	human, err := oneturntest.StartHuman(ctx, nc, oneturntest.HumanOptions{App: "app", Rules: []oneturntest.Rule{{
		Component: "PostApproval",
		Acts: []oneturntest.Act{{Value: approval.Decision{Status: "approved"}, When: func(ctx context.Context) {
			select {
			case <-parked:
			case <-ctx.Done():
			}
		}}},
	}}})
	require.NoError(t, err)
	defer human.Stop()

	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	response, err := client.Do(ctx, &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat", Turn: "t1"}, Workflow: "Press", Agent: "PostAgent", Model: "Post",
		Data: map[string]any{"title": "Spring sale", "body": "Everything must go."},
	})
	require.NoError(t, err)
	require.Equal(t, "Spring sale is published.", response.Content)
	require.Equal(t, []int{1, 1}, []int{*saved, *published})
}
