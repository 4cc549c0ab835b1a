package docs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/tool"
)

type charge struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
	Note     string `json:"note,omitempty"` // may be missing
	Items    []item `json:"items,omitempty"`
}

// item is nested data: a struct, a slice, a map or a pointer, as encoding/json reads it.
type item struct {
	Name  string            `json:"name"`
	Count int               `json:"count"`
	Tags  map[string]string `json:"tags,omitempty"`
}

var errBusy = errors.New("the bank is busy")

// chargeTool is bound to the output of agent Cashier in workflow Shop.
func chargeTool(pay func(ctx context.Context, key, customer string, cents int) error) oneturn.Tool {
	return oneturn.NewTool("charge", func(ctx context.Context, in charge) (map[string]any, error) {
		if in.Cents <= 0 {
			return nil, tool.UserError("the amount must be positive")
		}
		call := tool.Info(ctx)
		err := pay(ctx, call.IdempotencyKey, in.Customer, in.Cents)
		if errors.Is(err, errBusy) {
			return nil, tool.Retryable(err) // nothing has happened: try again
		}
		if err != nil {
			return nil, err
		}
		err = tool.Vars(ctx).Set("paid_cents", in.Cents)
		message := fmt.Sprintf("Thank you, %s: %d items, chat %s.", in.Customer, len(in.Items), call.Chat)
		return map[string]any{"status": "success", "message": message}, err
	}, oneturn.ToolOptions{
		Workflow: "Shop", Agent: "Cashier", Model: "Charge",
		Effect:      oneturn.Keyed,
		Timeout:     10 * time.Second,
		MaxAttempts: 3,
		Component:   "Receipt",
		Display:     "inline",
	})
}
