package target_test

import (
	"fmt"
	"time"

	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// What a tool outside the worker gets to know of its call, and how often it may be called.
func Example() {
	call := &tools.Call{Name: "quote", CallID: "turn-1", UserID: "ada\r\nOneturn-User: root", IdempotencyKey: "5f1c", FencingToken: 7, Epoch: 1, Attempt: 1}
	for _, h := range target.Identity(call) {
		fmt.Println(h.Name+":", h.Value)
	}
	rate := target.Rate{Calls: 10, Per: time.Second, Burst: 3}
	fmt.Println(rate.Size(), "at the same time, then one every", rate.Interval(), rate.Check())
	// Output:
	// Oneturn-Idempotency-Key: 5f1c
	// Oneturn-Fencing-Token: 7
	// Oneturn-Epoch: 1
	// Oneturn-Attempt: 1
	// Oneturn-Call: turn-1
	// Oneturn-Tool: quote
	// Oneturn-User: ada%0D%0AOneturn-User:%20root
	// 3 at the same time, then one every 100ms <nil>
}
