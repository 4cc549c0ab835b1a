package flow

import (
	"maps"
	"slices"

	"github.com/oneturn/oneturn/internal/nearest"
)

// frequent returns keys that models and people write in place of another.
func frequent(key string) []string {
	switch key {
	case "tool_name":
		return []string{"tool", "name", "tool_id", "function", "agent_id"}
	case "arguments":
		return []string{"args", "argument", "params", "parameters", "input", "with"}
	case "calls":
		return []string{"tool_calls", "toolcalls", "toolCalls", "tools", "actions"}
	case "content":
		return []string{"text", "answer", "response", "message"}
	case "type":
		return []string{"kind", "action"}
	case "steps":
		return []string{"agents", "calls", "tasks"}
	default:
		return nil
	}
}

// aliasOf returns the key that was probably written in place of an absent one, "" if there is none.
func aliasOf(m map[string]any, key string) string {
	if _, given := m[key]; given {
		return ""
	}
	for _, alias := range frequent(key) {
		if _, given := m[alias]; given {
			return alias
		}
	}
	if len(m) > maxAliases {
		return ""
	}
	near := func(word, _ string) int { return len(word) / 3 }
	return nearest.Of(key, slices.Sorted(maps.Keys(m)), nearest.Rule{Edits: near})
}

// maxAliases bounds the keys of an object that are compared with an absent one.
const maxAliases = 32
