//go:build unix

package tickets_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

func TestPythonToolOpensOneTicketHoweverOftenItsTurnComes(t *testing.T) {
	desk := t.TempDir()
	t.Setenv("TEST_DESK", desk) // where the tool puts its tickets
	server := oneturntest.NewServer(t)
	server.Provision()
	worker, err := oneturn.NewWorker(server.Connect(), oneturn.Config{
		Workflows: "workflows", Python: oneturn.Python{Env: []string{"TEST_*"}}, // a tool sees no other variables
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()

	nc := server.Connect()
	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	turn := &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat", Turn: "turn-1"}, Workflow: "Support", Agent: "TicketAgent", Model: "Ticket",
		Data: map[string]any{"title": "Printer on fire"},
	}
	for range 3 {
		response, err := client.Do(ctx, turn)
		require.NoError(t, err)
		require.Equal(t, "opened: Printer on fire", response.Content)
	}
	open, err := os.ReadDir(desk)
	require.NoError(t, err)
	require.Len(t, open, 1)

	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	facts, err := oneturntest.AtRest(ctx, nc, space, "")
	require.NoError(t, err)
	facts.Accepted = []oneturntest.Accepted{{App: "app", Chat: "chat", Turn: "turn-1"}}
	facts.NoLedger = true // the tool writes none: the number of tickets shows how often it ran
	require.Empty(t, oneturntest.Check(facts, map[string]bool{}))
}
