package program

import (
	"encoding/json"
	"fmt"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// The event chat.plan_started: its payload is for those who draw the program, its data for workers that continue it.

// Payload returns what frontends need to draw a program.
func Payload(p *flow.Program) events.PlanPayload {
	payload := events.PlanPayload{Reasoning: p.Reasoning, Steps: []events.PlanStep{}, Limits: events.PlanLimits{
		Calls: p.Limits.Calls, Parallel: p.Limits.Parallel, Depth: p.Limits.Depth,
		StepTimeoutMS: p.Limits.StepTimeout.Milliseconds(), TimeoutMS: p.Limits.Timeout.Milliseconds(),
	}}
	if p.Kind == flow.KindOrchestration {
		payload.Limits.Steps = p.Limits.Steps
	}
	for i := range p.Steps {
		step := &p.Steps[i]
		if step.Group {
			group := events.PlanGroup{Call: step.ID, Type: events.GroupParallel, Merge: string(step.Merge), Children: []string{}}
			for j := range step.Calls {
				group.Children = append(group.Children, step.Calls[j].ID)
			}
			payload.Groups = append(payload.Groups, group)
		}
		for j := range step.Calls {
			c := &step.Calls[j]
			needs := c.Needs
			if needs == nil {
				needs = []string{}
			}
			payload.Steps = append(payload.Steps, events.PlanStep{Call: c.ID, ToolName: c.Tool, Arguments: c.Arguments, Needs: needs})
		}
	}
	return payload
}

// Data returns a program in the form in which it is stored.
func Data(p *flow.Program) (json.RawMessage, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode the program: %w", err)
	}
	return data, nil
}
