package oneturn_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/provision"
)

type greetingExample struct {
	Name string `json:"name"`
}

type greetedExample struct {
	Message string `json:"message"` // becomes the content of the response
}

func greetExample(_ context.Context, in greetingExample) (greetedExample, error) {
	return greetedExample{"Hello, " + in.Name + "!"}, nil
}

// A worker with one Go function as its tool, and a client that publishes a turn twice and gets
// its one response. Server and streams are there for the example: a program of yours brings a
// connection to a server that turnctl provision has prepared.
func Example() {
	if err := example(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stored as message 1, duplicate: false
	// stored as message 1, duplicate: true
	// success: true, Hello, Ada!
}

func example() (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, err := os.MkdirTemp("", "oneturn-example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: store})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	nc, err := server.Conn()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	plan, err := provision.New(provision.Options{})
	if err != nil {
		return err
	}
	if _, err := provision.Apply(ctx, js, plan); err != nil {
		return err
	}

	worker, err := oneturn.NewWorker(nc, oneturn.Config{
		Tools: []oneturn.Tool{oneturn.NewTool("greet", greetExample, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})},
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	defer func() { cancel(); err = errors.Join(err, <-done) }()

	client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
	if err != nil {
		return err
	}
	turn := &oneturn.Turn{
		TurnID:   oneturn.TurnID{Chat: "chat-1", Turn: "turn-1"},
		Workflow: "Hello", Agent: "Greeter", Model: "Greeting",
		Data: map[string]any{"name": "Ada"},
	}
	for range 2 {
		receipt, err := client.Publish(ctx, turn)
		if err != nil {
			return err
		}
		fmt.Printf("stored as message %d, duplicate: %v\n", receipt.Sequence, receipt.Duplicate)
	}
	response, err := client.Await(ctx, turn.TurnID)
	if err != nil {
		return err
	}
	fmt.Printf("success: %v, %s\n", response.Success, response.Content)
	return nil
}
