package planner

import (
	"encoding/json"
	"strings"

	"github.com/oneturn/oneturn/agentjson"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/excerpt"
)

// Bounds of what a responder gets, in bytes, for the same reason as the bounds in data.go.
const (
	maxPlan    = 32 << 10  // a larger plan is omitted: the summary has what counts
	maxRequest = 32 << 10  // a longer request is cut
	maxResults = 96 << 10  // of all calls together; a longer result is cut
	maxSummary = 160 << 10 // a longer one is cut
)

// Responder asks an agent for the text that answers a user after a program.
type Responder struct {
	Prompt  string // what the user asked for, "" if the plan came from outside
	Plan    any    // the plan as it was written, a value tree
	Summary string // see [PlanSummary], [OrchestrationSummary], [RefusedSummary]
}

// Request returns the request. The agent gets no tools and no schema.
func (r *Responder) Request() Request {
	data := map[string]any{"request": nil, "plan": nil, "summary": excerpt.Of(r.Summary, maxSummary)}
	if r.Prompt != "" {
		data["request"] = cut(r.Prompt, maxRequest)
	}
	if plan, ok := encode([]any{[]any{r.Plan}}); ok && r.Plan != nil && len(plan) <= maxPlan {
		data["plan"] = r.Plan
	}
	head, ok := encode(map[string]any{"request": data["request"], "plan": data["plan"]})
	if !ok {
		head = "{}"
	}
	request := Request{Round: 1, Data: data}
	request.System = responseInstructions
	request.Messages = user(head + "\n\nTool Execution Complete\n\n" + cut(r.Summary, maxSummary))
	return request
}

// Content returns the text of a responder's result: a JSON string, or the text `content` or `text` of an object.
// Reasoning is not part of it. A result without a text is an [events.Error] with code tool_error.
func Content(reply json.RawMessage) (string, error) {
	text, _ := textOf(reply)
	if v, err := events.Decode(reply); err == nil {
		if m, ok := v.(map[string]any); ok {
			if text, ok = m["content"].(string); !ok {
				text, _ = m["text"].(string)
			}
		}
	}
	text, open := agentjson.WithoutReasoning(text)
	text = strings.TrimSpace(text)
	if text == "" || open {
		return "", &events.Error{Code: events.CodeToolError, Op: "respond", Msg: "the responder's result has no text: expected a string, or an object with content"}
	}
	return events.Clip(text), nil
}

// Fallback returns the text for the user if no responder has written one after a call failed: the tools that failed, with
// their errors. It is "" if none failed.
func Fallback(r flow.PlanResult) string {
	var failed []string
	for _, call := range r.Results {
		if !call.Success {
			failed = append(failed, call.ToolName+": "+messageOf(call.Error))
		}
	}
	return fallback(failed)
}

// OrchestrationFallback is [Fallback] for an orchestration.
func OrchestrationFallback(p *flow.Program, r flow.OrchestrationResult) string {
	names := agentNames(p)
	failed := make([]string, 0, len(r.Errors))
	for _, e := range r.Errors {
		failed = append(failed, names(e.StepID)+": "+messageOf(&e.Error))
	}
	return fallback(failed)
}

func fallback(failed []string) string {
	if len(failed) == 0 {
		return ""
	}
	return events.Clip("Tool execution failed: " + strings.Join(failed, "; "))
}
