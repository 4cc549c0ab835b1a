// A service with two tools, with nats.go only: stock returns how much there is, place_order
// orders, and asks a person first if it is much.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// muchIs is the number of items from which an order needs approval.
const muchIs = 10

type order struct {
	Item  string `json:"item"`
	Count int    `json:"count"`
}

// stock has no effect, as its metadata declare.
func stock(_ context.Context, _ *call, in order) (any, error) {
	have, ok := map[string]int{"tea": 120, "coffee": 80}[in.Item]
	if !ok {
		return nil, &failure{"user_error", "We do not sell " + in.Item + "."}
	}
	return map[string]any{"message": fmt.Sprintf("%d of %s in stock.", have, in.Item), "in_stock": have}, nil
}

// placeOrder may be called again while it waits for the answer: it has no effect before that.
func placeOrder(ctx context.Context, c *call, in order) (any, error) {
	if in.Count > muchIs {
		var answer struct {
			Approved bool `json:"approved"`
		}
		err := c.ask(ctx, question{
			Name: "approve", Tool: "ApproveOrder", Payload: in,
			Schema: json.RawMessage(`{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}}`),
		}, &answer)
		if err != nil {
			return nil, err
		}
		if !answer.Approved {
			return map[string]any{"status": "cancelled", "message": "Nothing was ordered."}, nil
		}
	}
	number := c.key()[:8] // the same for every run of this call: pass it to the shop
	return map[string]any{"status": "success", "message": fmt.Sprintf("Ordered %d of %s.", in.Count, in.Item), "number": number}, nil
}

// serve adds the service, which ends with its connection.
func serve(nc *nats.Conn) error {
	service, err := micro.AddService(nc, micro.Config{Name: "warehouse", Version: "1.0.0", Description: "What is there, and more of it."})
	if err != nil {
		return fmt.Errorf("add the service: %w", err)
	}
	const item = `"item":{"type":"string","minLength":1}`
	return errors.Join(
		service.AddEndpoint("stock", handler(nc, stock), micro.WithEndpointSubject("warehouse.stock"), micro.WithEndpointMetadata(map[string]string{
			"oneturn-effect": "none",
			"oneturn-input":  `{"type":"object","required":["item"],"properties":{` + item + `}}`,
		})),
		service.AddEndpoint("place_order", handler(nc, placeOrder), micro.WithEndpointSubject("warehouse.place_order"), micro.WithEndpointMetadata(map[string]string{
			"oneturn-input": `{"type":"object","required":["item","count"],"properties":{` + item + `,"count":{"type":"integer","minimum":1,"maximum":1000}}}`,
		})),
	)
}

func run(ctx context.Context, out io.Writer) error {
	url := os.Getenv("NATS_URL")
	if url == "" {
		url = nats.DefaultURL
	}
	nc, err := nats.Connect(url, nats.Name("warehouse"), nats.MaxReconnects(-1), nats.CustomInboxPrefix("_INBOX_warehouse"))
	if err != nil {
		return fmt.Errorf("connect to %s: %w", url, err)
	}
	defer nc.Close()
	if err := errors.Join(serve(nc), nc.Flush()); err != nil {
		return err
	}
	fmt.Fprintln(out, "warehouse is ready")
	<-ctx.Done()
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
