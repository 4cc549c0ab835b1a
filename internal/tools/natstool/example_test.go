package natstool_test

import (
	"context"
	"fmt"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/natstool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// A service, and a call of its only endpoint.
func Example() {
	ctx := context.Background()
	if err := greet(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: "Hello, Ada!"
}

func greet(ctx context.Context) error {
	store, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	server, err := embedded.Start(ctx, embedded.Options{Listen: "127.0.0.1:0", Store: store})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		return err
	}
	defer nc.Close()

	service, err := micro.AddService(nc, micro.Config{Name: "greeter", Version: "1.0.0"})
	if err != nil {
		return err
	}
	if err := service.AddEndpoint("greet", micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON("Hello, Ada!") }),
		micro.WithEndpointSubject("greeter.greet")); err != nil {
		return err
	}

	tool := natstool.New(&target.NATS{Service: "greeter"}, natstool.Options{Conn: nc})
	result, err := tool.Invoke(ctx, &tools.Call{Name: "greet", Args: map[string]any{"name": "Ada"}})
	if err != nil {
		return err
	}
	fmt.Println(string(result.Value))
	return tool.Close(ctx)
}
