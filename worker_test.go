package oneturn_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/turntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type greeting struct {
	Name string `json:"name"`
}

type greeted struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func greet(_ context.Context, in greeting) (greeted, error) {
	if in.Name == "" {
		return greeted{}, errors.New("nobody to greet")
	}
	return greeted{"success", "Hello, " + in.Name + "!"}, nil
}

// start runs a worker until the test ends.
func start(t *testing.T, s *turntest.Server, c oneturn.Config) *oneturn.Worker {
	t.Helper()
	w, err := oneturn.NewWorker(s.Connect(), c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return w
}

func client(t *testing.T, s *turntest.Server) *oneturn.Client {
	t.Helper()
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	return c
}

func turn(key string, data any) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: "app", Chat: "chat 1", Turn: key},
		Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Data: data,
	}
}

func server(t *testing.T) *turntest.Server {
	t.Helper()
	s := turntest.NewServer(t)
	s.Provision()
	return s
}

func await(t *testing.T, c *oneturn.Client, id oneturn.TurnID) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := c.Await(ctx, id)
	require.NoError(t, err)
	return r
}

func TestTurnRunsItsGoToolAndEndsInItsResponse(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, oneturn.Config{Tools: []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.For("Hello", "Greeter", "Greeting"))}})
	c := client(t, s)
	one := turn("t1", map[string]any{"name": "Ada"})
	for range 3 {
		_, err := c.Publish(t.Context(), one)
		require.NoError(t, err)
	}
	r := await(t, c, one.TurnID)
	require.True(t, r.Success)
	require.Equal(t, "Hello, Ada!", r.Content)
	require.Equal(t, "t1", r.ToolCallID)

	bad := turn("t2", map[string]any{"nam": json.Number("5")})
	_, err := c.Publish(t.Context(), bad)
	require.NoError(t, err)
	r = await(t, c, bad.TurnID)
	require.False(t, r.Success)
	require.Equal(t, events.CodeValidationFailed, r.Code)
	t.Log(r.Content, r.Payload)
}
