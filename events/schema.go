package events

import (
	"embed"
	"encoding/json"
	"strings"
)

//go:embed schemas/*.json
var schemaFiles embed.FS

// Schema returns the JSON Schema (draft 2020-12, self-contained) of the data of a kind of
// event, or for "envelope" of the envelope around it. It reports false for a kind without schema.
func Schema(kind string) (json.RawMessage, bool) {
	if strings.ContainsAny(kind, "./") {
		return nil, false
	}
	b, err := schemaFiles.ReadFile("schemas/" + kind + ".json")
	return b, err == nil
}
