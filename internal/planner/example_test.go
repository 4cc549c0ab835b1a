package planner_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
)

// A planning agent replies with a plan. The caller of Plan asks the agent, here a function.
func Example() {
	p := planner.Planner{
		Kind: flow.KindPlan, Input: flow.Request{Prompt: "Which tides are there today?"},
		Tools:   []planner.Tool{{Name: "tides", Arguments: json.RawMessage(`{"type":"object"}`)}},
		Options: flow.Options{Tools: flow.ToolList{{Name: "tides"}}},
	}
	agent := func(_ context.Context, r planner.Request) (json.RawMessage, error) {
		fmt.Println("round", r.Round)
		if r.Round == 1 {
			return json.RawMessage(`"Let me see."`), nil
		}
		return json.RawMessage(`{"type":"tool_calls","calls":[{"tool_name":"tides","arguments":{}}]}`), nil
	}
	planned, err := p.Plan(context.Background(), agent)
	fmt.Println(planned.Program.Steps[0].Calls[0].Tool, err)
	// Output:
	// round 1
	// round 2
	// tides <nil>
}
