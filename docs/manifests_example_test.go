package docs_test

import (
	"context"
	"errors"
	"time"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tools"
)

type charge struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
	Note     string `json:"note,omitempty"` // may be missing
}

var errBusy = errors.New("the bank is busy")

// chargeTool is bound to the output of agent Cashier in workflow Shop.
func chargeTool(pay func(ctx context.Context, key, customer string, cents int) error) oneturn.Tool {
	return oneturn.NewTool("charge", func(ctx context.Context, in charge) (map[string]any, error) {
		if in.Cents <= 0 {
			return nil, &events.Error{Code: events.CodeUserError, Msg: "the amount must be positive"}
		}
		err := pay(ctx, oneturn.CallFrom(ctx).IdempotencyKey, in.Customer, in.Cents)
		if errors.Is(err, errBusy) {
			return nil, tools.Retryable(err) // nothing has happened: try again
		}
		if err != nil {
			return nil, err
		}
		err = tools.Vars(ctx).Set("paid_cents", in.Cents)
		return map[string]any{"status": "success", "message": "Thank you, " + in.Customer + "!"}, err
	},
		oneturn.For("Shop", "Cashier", "Charge"), oneturn.WithEffect(oneturn.Keyed),
		oneturn.WithTimeout(10*time.Second), oneturn.WithMaxAttempts(3), oneturn.WithUI("Receipt", "inline"))
}
