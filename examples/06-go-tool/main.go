// A worker whose tool is a Go function. It needs a NATS server with the streams of oneturn:
// turnctl provision makes them.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/oneturn/oneturn"
)

type greeting struct {
	Name string `json:"name"`
}

func greet(_ context.Context, in greeting) (string, error) {
	return "Hello, " + in.Name + "!", nil
}

// run works until ctx ends.
func run(ctx context.Context, url string) error {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", url, err)
	}
	defer nc.Close()
	greet := oneturn.NewTool("greet", greet, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting"})
	w, err := oneturn.NewWorker(nc, oneturn.Config{Tools: []oneturn.Tool{greet}})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func main() {
	// SIGTERM is what Kubernetes and systemd send: running tools may finish, see Config.SoftStop.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
