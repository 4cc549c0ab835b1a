package oneturn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

type greeting struct {
	Name string `json:"name"`
}

type greeted struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func greet(_ context.Context, in greeting) (greeted, error) {
	if in.Name == "" {
		return greeted{}, errors.New("no name to greet")
	}
	return greeted{"success", "Hello, " + in.Name + "!"}, nil
}

func greeter() oneturn.Config {
	return oneturn.Config{Tools: []oneturn.Tool{
		oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"}),
	}}
}

func turn(key string, data any) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: "app", Chat: "chat 1", Turn: key},
		Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Data: data,
	}
}

func server(t *testing.T) *oneturntest.Server {
	t.Helper()
	s := oneturntest.NewServer(t)
	s.Provision()
	return s
}

// start runs a worker until the test ends.
func start(t *testing.T, s *oneturntest.Server, c oneturn.Config) {
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
}

func client(t *testing.T, s *oneturntest.Server) *oneturn.Client {
	t.Helper()
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	return c
}

func publish(t *testing.T, c *oneturn.Client, turns ...*oneturn.Turn) {
	t.Helper()
	for _, one := range turns {
		_, err := c.Publish(t.Context(), one)
		require.NoError(t, err)
	}
}

func await(t *testing.T, c *oneturn.Client, id oneturn.TurnID) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := c.Await(ctx, id)
	require.NoError(t, err)
	return r
}
