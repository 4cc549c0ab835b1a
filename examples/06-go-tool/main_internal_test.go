package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

func TestMain(m *testing.M) { oneturntest.VerifyNoLeaks(m) }

func TestExampleAnswersATurn(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	s.Provision()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(working, s.URL()) }()

	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	r, err := c.Do(ctx, &oneturn.Turn{
		TurnID: oneturn.TurnID{Chat: "c1", Turn: "t1"}, Workflow: "Hello", Agent: "Greeter", Model: "Greeting",
		Data: map[string]any{"name": "Ada"},
	})
	require.NoError(t, err)
	require.True(t, r.Success)
	require.Equal(t, "Hello, Ada!", r.Payload)
	stop()
	require.NoError(t, <-done)
}

func TestExampleReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	require.ErrorContains(t, run(t.Context(), s.URL()), "turnctl provision")
	require.Error(t, run(t.Context(), "nats://127.0.0.1:1"))
}
