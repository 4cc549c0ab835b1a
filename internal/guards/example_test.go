package guards_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
)

func Example() {
	large, err := guards.Compile(guards.Declared{On: guards.OnInput, When: "args.amount > 1000", Message: "refunds over 1000 are made by people"})
	if err != nil {
		panic(err)
	}
	known := guards.Input(func(_ context.Context, call *tools.Call) error {
		if call.UserID == "" {
			return &guards.Refusal{Reason: "a refund needs a known user"}
		}
		return nil
	})
	list := []guards.Guard{known, large}
	for _, amount := range []json.Number{"50", "5000"} {
		call := &tools.Call{Name: "refund", UserID: "ada", Args: map[string]any{"amount": amount}}
		fmt.Println(amount, guards.AdmitInput(context.Background(), list, call))
	}
	// Output:
	// 50 <nil>
	// 5000 refunds over 1000 are made by people
}
