package planner_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
)

const (
	orderInput  = `{"type":"object","properties":{"number":{"type":"string"}},"required":["number"]}`
	orderOutput = `{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}`
	labelInput  = `{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}`

	goodPlan = `{"type":"tool_calls","reasoning":"look up, then print","calls":[{"tool_name":"find_order","arguments":{"number":"1709"}},` +
		`{"tool_name":"print_label","arguments":{"order_id":"$0.output.order_id"}}]}`
	badPlan    = `{"type":"tool_calls","calls":[{"tool_name":"print_label","arguments":{"order_id":"$missing.output.value"}}]}`
	directPlan = `{"type":"direct_response","content":"On weekdays."}`
	goodSteps  = `{"steps":[{"id":"s1","agent":{"agent_id":"find_order","with":{"number":"{{ bindings.number }}"},"result_key":"order"}}]}`
	badSteps   = `{"steps":[{"id":"s1","agent":{"agent_id":"oracle"}}]}`
)

// shop is a planner for two tools.
func shop(t *testing.T, kind flow.Kind) *planner.Planner {
	t.Helper()
	p := &planner.Planner{Kind: kind, Input: flow.Request{Prompt: "Print the label of order 1709."}}
	if kind == flow.KindOrchestration {
		p.Input.Bindings = map[string]any{"number": "1709"}
	}
	add(t, p, "find_order", orderInput, orderOutput)
	add(t, p, "print_label", labelInput, "")
	return p
}

// add adds a tool. Names have to come in order.
func add(t *testing.T, p *planner.Planner, name, input, output string) {
	t.Helper()
	compiled := flow.Tool{Name: name}
	described := planner.Tool{Name: name, Effect: events.EffectUnsafe}
	var err error
	if input != "" {
		described.Arguments = json.RawMessage(input)
		compiled.Input, _ = model.CompileExternal(name, described.Arguments)
		compiled.Arguments, err = flow.NewSchema(described.Arguments)
		require.NoError(t, err)
	}
	if output != "" {
		described.Output = json.RawMessage(output)
		compiled.Output, err = flow.NewSchema(described.Output)
		require.NoError(t, err)
	}
	if name == "cp__agent_orchestrate" {
		compiled.Program = flow.KindOrchestration
	}
	list, _ := p.Options.Tools.(flow.ToolList)
	list = append(list, compiled)
	p.Options.Tools, p.Tools = list, append(p.Tools, described)
}

// script is a model with prepared replies.
type script struct {
	replies []any // string, json.RawMessage or error
	seen    []planner.Request
}

var errNoReply = errors.New("the model is asked once more than expected")

func (s *script) ask(_ context.Context, r planner.Request) (json.RawMessage, error) {
	s.seen = append(s.seen, r)
	if len(s.replies) < len(s.seen) {
		return nil, errNoReply
	}
	switch reply := s.replies[len(s.seen)-1].(type) {
	case string:
		return json.Marshal(reply)
	case json.RawMessage:
		return reply, nil
	case error:
		return nil, reply
	}
	return nil, errNoReply
}

// compile returns a function that lists how a JSON text violates a schema.
func compile(t *testing.T, schema json.RawMessage) func(text string) []model.Violation {
	t.Helper()
	compiled, unchecked := model.CompileExternalValue("reply", schema)
	require.Empty(t, unchecked)
	return func(text string) []model.Violation {
		tree, err := events.Decode([]byte(text))
		require.NoError(t, err)
		return compiled.Violations(tree)
	}
}
