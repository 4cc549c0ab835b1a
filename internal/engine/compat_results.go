package engine

import (
	"encoding/json"
	"strings"

	"github.com/oneturn/oneturn/events"
)

// asSeed003 does to a result what the first engine did, see [Options.Seed003].
func (p *pipeline) asSeed003(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return json.RawMessage(`"null"`)
	}
	if !strings.HasPrefix(string(value), "{") {
		return value
	}
	tree, err := events.Decode(value)
	if err != nil {
		return value
	}
	object, _ := tree.(map[string]any)
	switch {
	case object["_echo_raw"] == true:
		raw := p.inv.Raw
		if raw == nil {
			raw, _ = p.inv.Call.EncodedArgs()
		}
		object["raw"] = string(raw)
	case object["_wrap"] == true:
		delete(object, "_wrap")
		object = map[string]any{"tool": p.call.Name, "data": object}
	default:
		return value
	}
	encoded, err := events.AppendJSON(nil, object)
	if err != nil {
		return value
	}
	return json.RawMessage(encoded)
}
