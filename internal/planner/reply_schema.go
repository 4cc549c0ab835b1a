package planner

import (
	"encoding/json"

	"github.com/oneturn/oneturn/flow"
)

// maxEnum bounds the names that a schema lists.
const maxEnum = 200

// replySchema returns the JSON Schema of replies. It is flat and has no references, because endpoints that hold models
// to a schema take these most; what it cannot express is checked when the reply is compiled.
func (p *Planner) replySchema() json.RawMessage {
	schema := p.planSchema()
	if p.Kind == flow.KindOrchestration {
		schema = p.orchestrationSchema()
	}
	text, ok := encode(schema)
	if !ok { // a name that is not UTF-8
		return json.RawMessage(`{"type":"object"}`)
	}
	return json.RawMessage(text)
}

// names is the schema of the name of a tool.
func (p *Planner) names() map[string]any {
	if len(p.Tools) == 0 || len(p.Tools) > maxEnum {
		return text()
	}
	names := make([]any, len(p.Tools))
	for i := range p.Tools {
		names[i] = p.Tools[i].Name
	}
	return map[string]any{"type": "string", "enum": names}
}

func (p *Planner) planSchema() map[string]any {
	call := closed(map[string]any{"tool_name": p.names(), "arguments": open()}, "tool_name", "arguments")
	return closed(map[string]any{
		"type": one("direct_response", "tool_calls"), "content": text(), "reasoning": text(),
		"calls": array(call, p.Options.Limits.WithDefaults().Calls),
	}, "type")
}

func (p *Planner) orchestrationSchema() map[string]any {
	limits := p.Options.Limits.WithDefaults()
	agent := closed(map[string]any{
		"agent_id": p.names(), "action_id": text(), "prompt": text(), "with": open(), "result_key": text(), "timeout_ms": count(),
	}, "agent_id")
	group := closed(map[string]any{
		"steps": array(agent, limits.Calls), "merge_strategy": one(string(flow.MergeCollect), string(flow.MergeFirstSuccess)),
		"max_concurrency": count(), "result_key": text(), "bindings": open(),
	}, "steps")
	step := closed(map[string]any{
		"id": text(), "type": one("agent", "parallel"), "agent": agent, "parallel": group, "on_error": one("continue", "halt"),
	}, "id")
	return closed(map[string]any{"steps": array(step, limits.Steps)}, "steps")
}

func text() map[string]any  { return map[string]any{"type": "string"} }
func open() map[string]any  { return map[string]any{"type": "object"} }
func count() map[string]any { return map[string]any{"type": "integer", "minimum": number(1)} }

func one(values ...string) map[string]any {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return map[string]any{"type": "string", "enum": list}
}

func array(items map[string]any, most int) map[string]any {
	return map[string]any{"type": "array", "items": items, "maxItems": number(most)}
}

func closed(properties map[string]any, required ...string) map[string]any {
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	schema["required"] = one(required...)["enum"]
	return schema
}
