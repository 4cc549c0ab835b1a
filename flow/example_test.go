package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// A plan is compiled, and its calls are run one after the other. The second call gets the title that
// the first one has returned.
func Example() {
	output, err := flow.NewSchema(json.RawMessage(`{"properties": {"title": {"type": "string"}}}`))
	if err != nil {
		panic(err)
	}
	tools := flow.ToolList{{Name: "publish"}, {Name: "write", Output: output}}
	plan, err := events.Decode([]byte(`{"type": "tool_calls", "calls": [
		{"tool_name": "write", "arguments": {"topic": "tides"}},
		{"tool_name": "publish", "arguments": {"heading": "$0.output.title"}}]}`))
	if err != nil {
		panic(err)
	}
	program, err := flow.CompilePlan(plan, flow.Options{Tools: tools})
	if err != nil {
		panic(err)
	}

	state, outputs := flow.State{}, map[string]any{}
	for {
		next := program.Next(state)
		if len(next.Start) == 0 {
			break
		}
		call := next.Start[0]
		arguments, err := program.Resolve(call, tools, func(id string) (any, bool) { v, ok := outputs[id]; return v, ok })
		if err != nil {
			panic(err)
		}
		fmt.Println(call.Tool, string(events.JSONOf(arguments)))
		outputs[call.ID] = map[string]any{"title": "Low water"} // what the tool returned
		state[call.ID] = flow.CallState{Called: true, Ended: true, Success: true}
	}
	// Output:
	// write {"topic":"tides"}
	// publish {"heading":"Low water"}
}

// A plan with a mistake is refused before its first call, with feedback for the model that wrote it.
func ExampleRefused_Feedback() {
	output, err := flow.NewSchema(json.RawMessage(`{"properties": {"title": {"type": "string"}}}`))
	if err != nil {
		panic(err)
	}
	plan, err := events.Decode([]byte(`{"type": "tool_calls", "calls": [
		{"tool_name": "write"},
		{"tool_name": "publish", "arguments": {"heading": "$0.output.tittle"}}]}`))
	if err != nil {
		panic(err)
	}
	_, err = flow.CompilePlan(plan, flow.Options{Tools: flow.ToolList{{Name: "publish"}, {Name: "write", Output: output}}})
	if refused, ok := errors.AsType[*flow.Refused](err); ok {
		fmt.Println(refused.Feedback())
	}
	// Output:
	// Your plan was not run. Correct this error:
	// - /calls/1/arguments/heading: call 1, argument heading: $0.output.tittle refers to field tittle, which tool write does not have; it has title. Did you mean "title"?
	// You may call: publish, write.
	// Send the whole corrected plan again as one JSON object, and nothing else.
}
