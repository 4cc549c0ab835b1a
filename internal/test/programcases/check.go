package main

import (
	"context"

	"github.com/oneturn/oneturn"
)

// check checks the plan of a case without running it, and returns the result as `turnctl plan check` writes it.
func (s *session) check(ctx context.Context) (*Observed, error) {
	checked, err := s.client.CheckPlan(ctx, &oneturn.PlanToCheck{
		Workflows: s.workflows(), Workflow: workflowName, Agent: callerName, Data: s.c.data(),
	})
	if err != nil {
		return nil, err
	}
	status := "success"
	if !checked.Runs {
		status = "invalid"
	}
	steps := []any{}
	for _, step := range checked.Steps {
		steps = append(steps, map[string]any{
			"call": step.Call, "tool_name": step.Tool, "effect": step.Effect, "needs": append([]string{}, step.Needs...),
		})
	}
	errors := []any{}
	for _, e := range checked.Errors {
		errors = append(errors, e)
	}
	result, _ := tree(map[string]any{
		"status": status, "steps": steps, "errors": errors, "feedback": checked.Feedback, "writes": checked.Writes,
	}).(map[string]any)
	return &Observed{Check: result}, nil
}
