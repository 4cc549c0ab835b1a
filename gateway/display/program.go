package display

import (
	"encoding/json"

	"github.com/oneturn/oneturn/agui"
)

// planType is the type of the activity that shows the steps of a program.
const planType = "oneturn.plan"

// plan is a program as it is displayed, an activity of its turn.
type plan struct {
	id    string // tool_call_id of the turn
	steps []planStep
	at    map[string]int // by the id of the step
}

type planStep struct {
	Call  string   `json:"call"`
	Tool  string   `json:"tool_name"`
	Needs []string `json:"needs"`
	State string   `json:"state"` // pending, running, done or error
}

// maxSteps bounds the steps that are displayed of a program.
const maxSteps = 500

// planned adds a program.
func (c *Chat) planned(e *Event) []Change {
	var payload struct {
		Steps []struct {
			Call   string   `json:"call"`
			Tool   string   `json:"tool_name"`
			Needs  []string `json:"needs"`
			Copied *struct {
				Success bool `json:"success"`
			} `json:"copied"`
		} `json:"steps"`
	}
	if c.plans[e.ToolCallID] != nil || json.Unmarshal(e.Payload, &payload) != nil {
		return nil
	}
	p := &plan{id: e.ToolCallID, at: map[string]int{}}
	for i, step := range payload.Steps[:min(len(payload.Steps), maxSteps)] {
		s := planStep{Call: step.Call, Tool: step.Tool, Needs: append([]string{}, step.Needs...), State: "pending"}
		if step.Copied != nil {
			if s.State = "done"; !step.Copied.Success {
				s.State = "error"
			}
		}
		p.at[s.Call], p.steps = i, append(p.steps, s)
	}
	c.plans[p.id] = p
	return []Change{{kind: planStarted, plan: p}}
}

// step sets the state of a step. A program that has ended is no longer kept: its steps are calls.
func (c *Chat) step(turn, step, state string) []Change {
	p := c.plans[turn]
	if p == nil {
		return nil
	}
	at, ok := p.at[step]
	if !ok || p.steps[at].State == state {
		return nil
	}
	p.steps[at].State = state
	return []Change{{kind: stepChanged, plan: p, step: at}}
}

func (p *plan) activity() string { return "plan_" + p.id }

// snapshot is the activity as a whole. The steps are copied: an event is encoded after the next one was applied.
func (p *plan) snapshot() agui.Event {
	steps := make([]planStep, len(p.steps))
	copy(steps, p.steps)
	return &agui.ActivitySnapshot{
		MessageID: p.activity(), ActivityType: planType, Content: map[string]any{"tool_call_id": p.id, "steps": steps},
	}
}
