package harness

// The smallest worker: one Go tool that greets. Tests of the front and of package worker run it.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/oneturntest"
)

// Greeting is the input of [Greet].
type Greeting struct {
	Name string `json:"name"`
}

// Greeted is the result of [Greet].
type Greeted struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// Greet is the function of the tool. It needs a name.
func Greet(_ context.Context, in Greeting) (Greeted, error) {
	if in.Name == "" {
		return Greeted{}, errors.New("no name to greet")
	}
	return Greeted{"success", "Hello, " + in.Name + "!"}, nil
}

// Greeter is the configuration of a worker with the tool.
func Greeter() oneturn.Config {
	return oneturn.Config{Tools: []oneturn.Tool{
		oneturn.NewTool("greet", Greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"}),
	}}
}

// GreetingTurn is a turn that calls the tool.
func GreetingTurn(key string, data any) *oneturn.Turn {
	return &oneturn.Turn{
		TurnID:   oneturn.TurnID{App: "app", Chat: "chat 1", Turn: key},
		Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Data: data,
	}
}

// NewServer starts a server and provisions it.
func NewServer(t *testing.T) *oneturntest.Server {
	t.Helper()
	s := oneturntest.NewServer(t)
	s.Provision()
	return s
}

// StartWorker runs a worker until the test ends.
func StartWorker(t *testing.T, s *oneturntest.Server, c oneturn.Config) *oneturn.Worker {
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

// NewClient returns a client whose duplicates are found by the workers alone.
func NewClient(t *testing.T, s *oneturntest.Server) *oneturn.Client {
	t.Helper()
	c, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	return c
}

// Publish publishes turns.
func Publish(t *testing.T, c *oneturn.Client, turns ...*oneturn.Turn) {
	t.Helper()
	for _, one := range turns {
		_, err := c.Publish(t.Context(), one)
		require.NoError(t, err)
	}
}

// Await waits for the response of a turn.
func Await(t *testing.T, c *oneturn.Client, id oneturn.TurnID) *oneturn.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := c.Await(ctx, id)
	require.NoError(t, err)
	return r
}
