package planner

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/excerpt"
)

// maxMessage bounds the error of one call, in bytes.
const maxMessage = 1 << 10

// PlanSummary describes the calls of a plan to a responder: `1. name - SUCCESS` and the result, or `2. name - FAILED` and
// the error.
func PlanSummary(r flow.PlanResult) string {
	s := summary{most: share(len(r.Results))}
	for _, call := range r.Results {
		if call.Success {
			s.success(call.ToolName, call.Output)
		} else {
			s.failure(call.ToolName, messageOf(call.Error))
		}
	}
	switch n := len(r.Skipped); {
	case n == 1:
		s.add("1 later call was not started.")
	case n > 1:
		s.add(strconv.Itoa(n) + " later calls were not started.")
	}
	return s.b.String()
}

// OrchestrationSummary is [PlanSummary] for the agents of an orchestration: `1. name (id of the step) - SUCCESS`.
func OrchestrationSummary(p *flow.Program, r flow.OrchestrationResult) string {
	names := agentNames(p)
	var calls []flow.StepResult
	for _, step := range r.Steps {
		if step.Type == "parallel" {
			calls = append(calls, step.Children...)
		} else {
			calls = append(calls, step)
		}
	}
	s := summary{most: share(len(calls))}
	for _, call := range calls {
		switch {
		case call.Status == flow.StatusSuccess:
			s.success(names(call.ID), call.Output)
		case call.Error != nil:
			s.failure(names(call.ID), messageOf(&call.Error.Message))
		default:
			s.numbered(names(call.ID), "SKIPPED")
		}
	}
	return s.b.String()
}

// agentNames returns how the agents of a program are called in texts, by the ids of their calls.
func agentNames(p *flow.Program) func(call string) string {
	agents := map[string]string{}
	for _, call := range p.Calls() {
		agents[call.ID] = strings.TrimPrefix(call.Tool, "agent:")
	}
	return func(call string) string {
		if agents[call] == "" {
			return call
		}
		return agents[call] + " (" + call + ")"
	}
}

// RefusedSummary describes a program that was not run: `Plan validation failed:` and one line for each problem. It is also
// the text for the user if no responder has written one.
func RefusedSummary(r *flow.Refused) string {
	var b strings.Builder
	b.WriteString("Plan validation failed:")
	for _, p := range r.Problems {
		line := "\n- " + excerpt.Line(p.Message, maxMessage)
		if b.Len()+len(line) > maxSummary {
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// share is how many bytes of the summary the result of one of n calls may have.
func share(n int) int { return maxResults / max(n, 6) } //nolint:mnd // no result takes more than a sixth

// summary is a list of calls.
type summary struct {
	b    strings.Builder
	n    int
	most int
}

func (s *summary) add(text string) {
	if s.b.Len() > 0 {
		s.b.WriteString("\n\n")
	}
	s.b.WriteString(text)
}

func (s *summary) numbered(name, status string) {
	s.n++
	s.add(strconv.Itoa(s.n) + ". " + name + " - " + status)
}

func (s *summary) success(name string, output any) {
	s.numbered(name, "SUCCESS")
	s.b.WriteString("\n   Result: ")
	text, ok := encode(output)
	if !ok {
		s.b.WriteString("(it has no JSON form)")
		return
	}
	var pretty bytes.Buffer
	if len(text) <= s.most && json.Indent(&pretty, []byte(text), "   ", "  ") == nil {
		text = pretty.String()
	}
	s.b.WriteString(cut(text, s.most))
}

func (s *summary) failure(name, message string) {
	s.numbered(name, "FAILED")
	s.b.WriteString("\n   Error: " + message)
}

// messageOf is the error of a call on one line.
func messageOf(message *string) string {
	if message == nil || strings.TrimSpace(*message) == "" {
		return "unknown error"
	}
	return excerpt.Line(*message, maxMessage)
}
