package events

import (
	"maps"
	"strings"
)

// What a frontend does with an event that it has decoded: the payload that a component gets, and whether a message is
// displayed. Clients in other languages have the same two rules.

// ComponentPayload returns the payload that the component of a tool_call is displayed with. Arguments of an automatic tool
// (interaction_type auto_tool, tool_args an object) are moved to the top level, over the other fields of the payload. If
// one of them has the name of the component and is an object, as a model in the output of an agent is, its fields are
// moved to the top level too, below the other arguments; only once, and nothing but an object. Any other payload is
// returned as it is, also one whose arguments are a [Blob], which are to be fetched before. The event is a decoded JSON object with kind, component_type and payload; it is not modified.
func ComponentPayload(event map[string]any) map[string]any {
	payload, _ := event["payload"].(map[string]any)
	args, ok := payload["tool_args"].(map[string]any)
	if _, blob := BlobOf(payload["tool_args"]); !ok || blob || payload["interaction_type"] != InteractionAutoTool {
		return payload
	}
	flat := maps.Clone(payload)
	delete(flat, "tool_args")
	component, _ := event["component_type"].(string)
	model, promoted := args[component].(map[string]any)
	promoted = promoted && component != ""
	if promoted {
		maps.Copy(flat, model)
	}
	for name, value := range args {
		if !promoted || name != component {
			flat[name] = value
		}
	}
	return flat
}

// Visible returns the text of a text, print or tool_response event, and whether people see it. A message whose ui_hidden
// is true is hidden, and so is the response of an automatic tool that has succeeded: the tool has displayed what there
// is to see. Only true counts, not a text or a number in its place. The event is a decoded JSON object.
func Visible(event map[string]any) (text string, shown bool) {
	kind, _ := event["kind"].(string)
	succeeded := strings.TrimPrefix(kind, "chat.") == KindToolResponse &&
		event["interaction_type"] == InteractionAutoTool && event["success"] == true
	if succeeded || event["ui_hidden"] == true {
		return "", false
	}
	text, _ = event["content"].(string)
	return text, true
}
