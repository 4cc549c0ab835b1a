package events

import (
	"embed"
	"encoding/json"
	"strings"
)

//go:embed schemas/*.json
var schemaFiles embed.FS

// SchemaEnvelope is the name of the schema of the envelope; other schemas describe the `data`
// inside it.
const SchemaEnvelope = "envelope"

// Schema returns the JSON Schema (draft 2020-12, self-contained) of the data of a kind of
// event, or of the envelope. It reports false for a kind without schema.
func Schema(kind string) (json.RawMessage, bool) {
	if strings.ContainsAny(kind, "./") {
		return nil, false
	}
	b, err := schemaFiles.ReadFile("schemas/" + kind + ".json")
	return b, err == nil
}
