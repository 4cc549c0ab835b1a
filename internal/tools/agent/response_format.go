package agent

import (
	"encoding/json"
	"slices"

	"github.com/oneturn/oneturn/events"
)

// format is the response_format of a request.
type format struct {
	Type   string  `json:"type"`
	Schema *schema `json:"json_schema,omitempty"`
}

type schema struct {
	Name   string          `json:"name"`
	Strict bool            `json:"strict"`
	Schema json.RawMessage `json:"schema"`
}

func schemaFormat(s json.RawMessage) *format {
	return &format{Type: "json_schema", Schema: &schema{Name: "answer", Strict: strict(s), Schema: s}}
}

// withFormatPrompt is the conversation for an endpoint that needs the schema in the prompt. With
// the format json_object, the prompt must contain the word JSON.
func withFormatPrompt(ask Ask) []Message {
	const prompt = "Answer with one JSON value that fits this JSON Schema, and with nothing else:\n"
	all := slices.Clone(ask.Messages)
	if len(all) > 0 && all[0].Role == "system" {
		all[0].Content += "\n\n" + prompt + string(ask.Schema)
		return all
	}
	return slices.Insert(all, 0, Message{Role: "system", Content: prompt + string(ask.Schema)})
}

// strict reports whether a schema is one that models can be held to token by token: each object
// of it closed and each property required.
func strict(s json.RawMessage) bool {
	tree, err := events.Decode(s)
	root, ok := tree.(map[string]any)
	return err == nil && ok && root["type"] == "object" && closed(root)
}

func closed(v any) bool {
	switch v := v.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !closed(one) })
	case map[string]any:
		if object(v) && !allRequired(v) {
			return false
		}
		for key, one := range v {
			switch key {
			case "enum", "const", "default", "examples": // values, no schemas
			case "properties", "$defs", "definitions": // schemas by any name
				named, _ := one.(map[string]any)
				for _, s := range named {
					if !closed(s) {
						return false
					}
				}
			default:
				if !closed(one) {
					return false
				}
			}
		}
	}
	return true
}

// object reports whether a schema lets objects in.
func object(s map[string]any) bool {
	if s["properties"] != nil || s["type"] == "object" {
		return true
	}
	several, _ := s["type"].([]any)
	return slices.Contains(several, any("object"))
}

func allRequired(s map[string]any) bool {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for name := range properties {
		if !slices.Contains(required, any(name)) {
			return false
		}
	}
	return s["additionalProperties"] == false
}
