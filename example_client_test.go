package oneturn_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/tool"
)

// withServer calls do with a connection to a server for an example.
func withServer(do func(ctx context.Context, nc *nats.Conn) error) {
	run := func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		dir, err := os.MkdirTemp("", "oneturn-example-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: dir})
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
		return do(ctx, nc)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stdout, err) // an output that the example does not expect
	}
}

// withClient calls do with a client, while a worker runs one tool.
func withClient(t oneturn.Tool, do func(ctx context.Context, client *oneturn.Client) error) {
	withWorker(oneturn.Config{Tools: []oneturn.Tool{t}}, do)
}

// withWorker calls do with a client, while a worker runs.
func withWorker(c oneturn.Config, do func(ctx context.Context, client *oneturn.Client) error) {
	withServer(func(ctx context.Context, nc *nats.Conn) (err error) {
		c.Logger = slog.New(slog.DiscardHandler)
		worker, err := oneturn.NewWorker(nc, c)
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- worker.Run(running) }()
		defer func() { stop(); err = errors.Join(err, <-done) }()
		for worker.Ready() != nil && ctx.Err() == nil {
			<-time.After(10 * time.Millisecond)
		}
		client, err := oneturn.NewClient(nc, oneturn.ClientOptions{})
		if err != nil {
			return err
		}
		return do(ctx, client)
	})
}

type order struct {
	SKU   string `json:"sku"`
	Count int    `json:"count"`
}

// placed is a result whose message becomes the content of the response.
type placed struct {
	Message string `json:"message"`
}

// A tool of the agent Clerk. The shop knows an order that it gets again by the idempotency key, so the tool may be entered
// again after its worker died.
func ExampleNewTool() {
	place := func(ctx context.Context, in order) (placed, error) {
		if in.Count < 1 {
			return placed{}, tool.UserError("order at least one")
		}
		key := tool.Info(ctx).IdempotencyKey // the same in every run of this call
		return placed{Message: fmt.Sprintf("ordered %d of %s (the key is set: %v)", in.Count, in.SKU, key != "")}, nil
	}
	placeOrder := oneturn.NewTool("place_order", place, oneturn.ToolOptions{
		Workflow: "Shop", Agent: "Clerk", Model: "Order",
		Effect: oneturn.Keyed, Timeout: 10 * time.Second,
	})
	withClient(placeOrder, func(ctx context.Context, client *oneturn.Client) error {
		for i, count := range []int{2, 0} {
			response, err := client.Do(ctx, &oneturn.Turn{
				TurnID:   oneturn.TurnID{Chat: "chat-1", Turn: fmt.Sprint("turn-", i)},
				Workflow: "Shop", Agent: "Clerk", Model: "Order", Data: order{"A-7", count},
			})
			if err != nil {
				return err
			}
			fmt.Println(response.Success, response.Code, response.Content)
		}
		return nil
	})
	// Output:
	// true  ordered 2 of A-7 (the key is set: true)
	// false user_error order at least one
}

// Await finds the response also when it was stored before, by another process or days ago.
func ExampleClient_Await() {
	greet := func(_ context.Context, in struct {
		Name string `json:"name"`
	},
	) (string, error) {
		return "Hello, " + in.Name + "!", nil
	}
	greeter := oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})
	withClient(greeter, func(ctx context.Context, client *oneturn.Client) error {
		turn := &oneturn.Turn{
			TurnID:   oneturn.TurnID{Chat: "chat-1", Turn: "turn-1"},
			Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Data: map[string]any{"name": "Ada"},
		}
		if _, err := client.Publish(ctx, turn); err != nil {
			return err
		}
		for range 2 {
			response, err := client.Await(ctx, turn.TurnID)
			if err != nil {
				return err
			}
			fmt.Println(response.Payload, "attempts:", response.Attempts)
		}
		return nil
	})
	// Output:
	// Hello, Ada! attempts: 1
	// Hello, Ada! attempts: 1
}

type post struct {
	Title string `json:"title"`
}

// approval is a tool that asks a person.
func approval() (oneturn.Tool, *oneturn.Turn) {
	publish := func(ctx context.Context, in post) (string, error) {
		agreed, err := tool.Ask[bool](ctx, tool.Question{Component: "Approval", Payload: in})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s is published: %v", in.Title, agreed), nil
	}
	options := oneturn.ToolOptions{Workflow: "Blog", Agent: "Editor", Model: "Post", Effect: oneturn.Replay}
	turn := &oneturn.Turn{
		TurnID:   oneturn.TurnID{Chat: "chat-1", Turn: "turn-1"},
		Workflow: "Blog", Agent: "Editor", Model: "Post", Data: post{"News"},
	}
	return oneturn.NewTool("publish", publish, options), turn
}

// The first question of a call that has no name is number 1. An answer of the wrong type is refused, and the question
// stays open.
func ExampleClient_Answer() {
	publish, turn := approval()
	withClient(publish, func(ctx context.Context, client *oneturn.Client) error {
		if _, err := client.Publish(ctx, turn); err != nil {
			return err
		}
		question := oneturn.QuestionID{Chat: "chat-1", ToolCallID: "turn-1/1"}
		for _, value := range []any{"perhaps", true} {
			result, err := client.Answer(ctx, &oneturn.Answer{QuestionID: question, Value: value})
			if err != nil {
				return err
			}
			fmt.Println(result.Status, result.Code)
		}
		response, err := client.Await(ctx, turn.TurnID)
		if err != nil {
			return err
		}
		fmt.Println(response.Payload)
		return nil
	})
	// Output:
	// 422 invalid
	// 200 accepted
	// News is published: true
}

// A frontend lists the open questions of a chat page by page.
func ExampleClient_Questions() {
	publish, turn := approval()
	withClient(publish, func(ctx context.Context, client *oneturn.Client) error {
		if _, err := client.Publish(ctx, turn); err != nil {
			return err
		}
		filter := oneturn.QuestionFilter{Chat: "chat-1"}
		poll := time.NewTicker(10 * time.Millisecond)
		defer poll.Stop()
		for asked := 0; asked == 0 && ctx.Err() == nil; <-poll.C { // until the tool asks
			page, err := client.Questions(ctx, filter)
			if errors.Is(err, nats.ErrNoResponders) { // the worker has not started yet
				continue
			}
			if err != nil {
				return err
			}
			for _, q := range page.Questions {
				asked++
				fmt.Println(q.ToolCallID, q.Component, q.State, q.Agent)
			}
			filter.From = page.Next
		}
		return ctx.Err()
	})
	// Output:
	// turn-1/1 Approval open Editor
}

// Run ends when its context does, after it has let running tools finish.
func ExampleWorker_Run() {
	withServer(func(ctx context.Context, nc *nats.Conn) error {
		running, stop := context.WithCancel(ctx) // in a program: signal.NotifyContext
		defer stop()
		greet := func(context.Context, post) (string, error) { return "Hello!", nil }
		worker, err := oneturn.NewWorker(nc, oneturn.Config{
			Tools:  []oneturn.Tool{oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter"})},
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() { done <- worker.Run(running) }()
		for worker.Ready() != nil {
			select {
			case err := <-done:
				return err
			case <-time.After(10 * time.Millisecond):
			}
		}
		fmt.Println("ready")
		stop()
		fmt.Println("stopped:", <-done)
		return nil
	})
	// Output:
	// ready
	// stopped: <nil>
}
