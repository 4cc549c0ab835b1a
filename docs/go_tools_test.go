package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

// Order is the input of the tool, and the model of the agent's output.
type Order struct {
	SKU   string `json:"sku"            jsonschema:"what is ordered"`
	Count int    `json:"count"`
	Note  string `json:"note,omitempty"` // with omitempty it may be absent
}

// Receipt is the result.
type Receipt struct {
	Number  string `json:"number"`
	Message string `json:"message"` // becomes the content of the response
}

// Shop is where orders are placed. It places one order for a key, however often it is asked.
type Shop interface {
	Place(ctx context.Context, key string, order Order) (number string, err error)
}

var errClosed = errors.New("the shop is closed")

func placeOrder(shop Shop) func(context.Context, Order) (Receipt, error) {
	return func(ctx context.Context, in Order) (Receipt, error) {
		number, err := shop.Place(ctx, tool.Info(ctx).IdempotencyKey, in)
		switch {
		case errors.Is(err, errClosed): // nothing has happened: it may be tried again
			return Receipt{}, tool.RetryAfter(err, time.Second)
		case err != nil:
			return Receipt{}, err // tool_error
		case number == "":
			return Receipt{}, tool.UserError("unknown article " + in.SKU)
		}
		if err := tool.Vars(ctx).Set("last_order", number); err != nil { // a context variable of the chat
			return Receipt{}, err
		}
		return Receipt{Number: number, Message: "Order " + number + " is placed."}, nil
	}
}

// small refuses large orders before the tool is entered.
func small(_ context.Context, _ tool.CallInfo, args map[string]any) error {
	count, _ := args["count"].(json.Number)
	if n, err := count.Int64(); err != nil || n > 100 {
		return tool.Refuse("orders over 100 need a person")
	}
	return nil
}

func orderTool(shop Shop) oneturn.Tool {
	return oneturn.NewTool("place_order", placeOrder(shop), oneturn.ToolOptions{
		Workflow: "Orders", Agent: "OrderAgent", Model: "Order",
		Effect:      oneturn.Keyed,
		Timeout:     10 * time.Second,
		MaxAttempts: 3,
		Limits:      oneturn.Limits{Tool: oneturn.Limit{Concurrency: 4}, Output: 1 << 20},
		CheckCall:   small,
	})
}

func priceTool(prices map[string]int) oneturn.Tool {
	price := func(_ context.Context, in Order) (int, error) { return prices[in.SKU], nil }
	return oneturn.NewTool("price", price, oneturn.ToolOptions{
		Workflow: "Orders", Agent: "PriceAgent", Model: "Price",
		Effect:     oneturn.ReadOnly,
		CacheFor:   5 * time.Minute,
		CacheScope: "tenant",
	})
}

// corner is a shop that is closed at first.
type corner struct{ closed, placed int }

func (c *corner) Place(_ context.Context, _ string, order Order) (string, error) {
	switch {
	case c.closed > 0:
		c.closed--
		return "", errClosed
	case order.SKU == "moon":
		return "", nil
	}
	c.placed++
	return "A-1", nil
}

func TestToolsOfThePageAboutGoWork(t *testing.T) {
	t.Parallel()
	server := oneturntest.NewServer(t)
	server.Provision()
	shop := &corner{closed: 1}
	w, err := oneturn.NewWorker(server.Connect(), oneturn.Config{Tools: []oneturn.Tool{orderTool(shop), priceTool(map[string]int{"tea": 3})}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	client, err := oneturn.NewClient(server.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	for _, c := range []struct {
		turn, agent, model string
		data               map[string]any
		content            string
		code               events.Code
	}{
		{"t1", "OrderAgent", "Order", map[string]any{"sku": "tea", "count": 2}, "Order A-1 is placed.", ""},
		{"t2", "OrderAgent", "Order", map[string]any{"sku": "moon", "count": 1}, "unknown article moon", events.CodeUserError},
		{"t3", "OrderAgent", "Order", map[string]any{"sku": "tea", "count": 101}, "orders over 100 need a person", events.CodeGuardrail},
		{"t4", "PriceAgent", "Price", map[string]any{"sku": "tea", "count": 1}, "", ""},
	} {
		id := oneturn.TurnID{App: "acme", Chat: "c", Turn: c.turn}
		_, err := client.Publish(t.Context(), &oneturn.Turn{TurnID: id, Workflow: "Orders", Agent: c.agent, Model: c.model, Data: c.data})
		require.NoError(t, err)
		wait, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		response, err := client.Await(wait, id)
		cancel()
		require.NoError(t, err)
		require.Contains(t, response.Content, c.content, c.turn)
		require.Equal(t, c.code, response.Code, c.turn)
	}
	require.Equal(t, 1, shop.placed)
}

func TestCodeOfThePageAboutGoIsInItsTest(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("go_tools_test.go")
	require.NoError(t, err)
	blocks := fenced(t, "go-tools.md", "go")
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		for part := range strings.SplitSeq(b.text, "\n\n") {
			require.Contains(t, string(source), strings.TrimSpace(part), "go-tools.md:%d", b.line)
		}
	}
	page, err := os.ReadFile("go-tools.md")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(page), "\n"), 120)
}
