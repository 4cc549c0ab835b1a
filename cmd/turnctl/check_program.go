package main

import (
	"fmt"
	"strings"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/plural"
)

// programReport is how a tool runs programs.
type programReport struct {
	Steps []string `json:"steps"` // the tools that steps may call in a turn of the agent

	Effects       map[string]bindings.Effect `json:"effects"` // of these tools
	Planner       string                     `json:"planner,omitempty"`
	Respond       string                     `json:"respond,omitempty"`
	Approve       bool                       `json:"approve"`
	Enabled       bool                       `json:"enabled"`
	Calls         int                        `json:"calls"`
	TopSteps      int                        `json:"top_steps"` // of an orchestration
	Parallel      int                        `json:"parallel"`
	Depth         int                        `json:"depth"`
	StepTimeoutMS int64                      `json:"step_timeout_ms"`
	TimeoutMS     int64                      `json:"timeout_ms"`
}

func reportProgram(set *bindings.Set, b *bindings.Binding) *programReport {
	p := b.Program
	if p == nil {
		return nil
	}
	r := &programReport{
		Steps: []string{}, Effects: map[string]bindings.Effect{}, Planner: p.Planner, Respond: p.Respond, Approve: p.Approve, Enabled: p.Enabled,
		Calls: p.Limits.Calls, TopSteps: p.Limits.Steps, Parallel: p.Limits.Parallel, Depth: p.Limits.Depth,
		StepTimeoutMS: p.Limits.StepTimeout.Milliseconds(), TimeoutMS: p.Limits.Timeout.Milliseconds(),
	}
	for _, step := range set.StepTools(b, b.Agent) {
		r.Steps = append(r.Steps, step.Tool)
		r.Effects[step.Tool] = step.Effect
	}
	return r
}

// how describes the rules by which programs run.
func (p *programReport) how() string {
	steps := "steps call no tool"
	if len(p.Steps) > 0 {
		const most = 10
		names := make([]string, 0, most)
		for _, name := range p.Steps[:min(len(p.Steps), most)] {
			names = append(names, fmt.Sprintf("%s (%s)", id(name), p.Effects[name]))
		}
		steps = "steps call " + strings.Join(names, ", ")
		if more := len(p.Steps) - len(names); more > 0 {
			steps += fmt.Sprintf(" and %d more", more)
		}
	}
	parts := []string{steps}
	if !p.Enabled {
		parts = append([]string{"disabled"}, parts...)
	}
	if p.Planner != "" {
		parts = append(parts, "prompts go to "+id(p.Planner))
	}
	if p.Respond != "" {
		parts = append(parts, "answers are by "+id(p.Respond))
	}
	if p.Approve {
		parts = append(parts, "a person approves them")
	}
	return strings.Join(append(parts, plural.Of(p.Calls, "call")+" at most", "timeout "+milli(p.TimeoutMS)+", of a step "+milli(p.StepTimeoutMS)), "; ")
}
