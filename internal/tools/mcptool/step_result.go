package mcptool

import (
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// stepValue is the value of a result of a step: its structured content; else its only text if that is a JSON object; else
// an object with the text, and with the list of contents if some are not texts.
func stepValue(r *mcp.CallToolResult, exact json.RawMessage) (json.RawMessage, error) {
	if exact != nil || r.StructuredContent != nil {
		return value(r, exact)
	}
	var texts []string
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	if len(texts) == 1 {
		trimmed := strings.TrimSpace(texts[0])
		if tree, err := events.Decode([]byte(trimmed)); err == nil {
			if _, ok := tree.(map[string]any); ok {
				return json.RawMessage(trimmed), nil
			}
		}
	}
	object := map[string]any{"text": strings.Join(texts, "\n")}
	if len(texts) < len(r.Content) {
		object["content"] = r.Content
	}
	return encode(object)
}

// skillOf is the id of the skill in `_meta` of a result, "" if it has none.
func skillOf(r *mcp.CallToolResult) string {
	return tools.SkillID(map[string]any{"_meta": map[string]any(r.Meta)})
}
