//go:build unix

package tickets_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	tickets "github.com/oneturn/oneturn/examples/07-test-your-tool"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestTicketIsClosedOnlyWhenItsUserAgrees(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	server := oneturntest.NewServer(t)
	server.Provision()
	worker, err := oneturn.NewWorker(server.Connect(), oneturn.Config{Tools: []oneturn.Tool{tickets.Closing()}})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()

	nc := server.Connect()
	human, err := oneturntest.StartHuman(ctx, nc, oneturntest.HumanOptions{App: "app", Rules: []oneturntest.Rule{{
		Component: "Confirm",
		Acts:      []oneturntest.Act{{Value: "sure"}, {Value: true, User: "eve"}, {Value: true}, {Value: true}},
	}}})
	require.NoError(t, err)
	defer human.Stop()
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	require.NoError(t, err)
	response, err := client.Do(ctx, &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat", Turn: "turn-1"}, Workflow: "Support", Agent: "ClosingAgent", Model: "Ticket",
		Data: map[string]any{"title": "Printer on fire"}, UserID: "ada",
	})
	require.NoError(t, err)
	require.Equal(t, "closed: Printer on fire", response.Payload)

	answers, err := human.AwaitAnswers(ctx, 4)
	require.NoError(t, err)
	for i, status := range []int{422, 403, 200, 200} { // not a boolean, another user, yes, and yes again
		require.Equal(t, status, answers[i].Result.Status)
	}
}
