package program

import (
	"encoding/json"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
)

// Planner returns the planner for a prompt that [Compiler.Compile] has returned. It compiles a stored reply too.
func (c *Compiler) Planner(ask *flow.Request) *planner.Planner {
	return &planner.Planner{
		Kind: kindOf(c.Binding), Input: *ask, Tools: c.Tools.forPlanner(), Options: c.Options(true), Responds: c.Binding.Program.Respond != "",
	}
}

// forPlanner returns what a planner learns of the tools, under the names that its program uses, in their order.
func (t *Tools) forPlanner() []planner.Tool {
	list := make([]planner.Tool, 0, len(t.names))
	for _, name := range t.names {
		b := t.named(name)
		d := described(b, t.catalog.describe)
		switch {
		case b.Program != nil:
			d.Input = programInput(b)
		case d.Input == nil && b.Model != nil:
			d.Input = b.Model.JSONSchema()
		}
		tool, _ := t.Find(b.Tool)
		list = append(list, planner.Tool{Name: name, Description: d.Text, Effect: tool.Effect, Arguments: d.Input, Output: d.Output})
	}
	return list
}

// named returns the binding of a name of [Tools.Names]. Orchestrations name agents by their ids first.
func (t *Tools) named(name string) *bindings.Binding {
	if t.agents {
		if b := t.Binding("agent:" + name); b != nil {
			return b
		}
	}
	return t.Binding(name)
}

// programInput is the schema of the arguments of a tool that runs programs itself. A planner has to write their plans: a
// program that it wrote is not planned again.
func programInput(b *bindings.Binding) json.RawMessage {
	const (
		plan          = `{"type":"object","required":["plan"],"properties":{"plan":{"type":"object"}}}`
		orchestration = `{"type":"object","required":["plan"],"properties":{"plan":{"type":"object","required":["steps"]},"bindings":{"type":"object"}}}`
	)
	if b.Kind == bindings.KindPlan {
		return json.RawMessage(plan)
	}
	return json.RawMessage(orchestration)
}
