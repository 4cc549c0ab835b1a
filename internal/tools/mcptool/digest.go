package mcptool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
)

// described is the description of a tool by its server.
type described struct {
	digest        string
	text          string
	input, output json.RawMessage // nil if it declares none
	readOnly      bool
	idempotent    bool
}

// describe takes the relevant part of a tool's description, and the digest that pins it: of its name,
// schemas and annotations as canonical JSON. A changed description text does not make another tool.
func describe(tool *mcp.Tool) (*described, error) {
	d := &described{text: tool.Description}
	pinned := map[string]any{"name": tool.Name}
	for key, part := range map[string]any{"inputSchema": tool.InputSchema, "outputSchema": tool.OutputSchema, "annotations": tool.Annotations} {
		data, err := json.Marshal(part)
		if err != nil {
			return nil, fmt.Errorf("read tool %.80q: %w", tool.Name, err)
		}
		if string(data) == "null" {
			continue
		}
		tree, err := events.Decode(data)
		if err != nil { // the server checks it; the tool is identified by its bytes
			tree = string(data)
		}
		pinned[key] = tree
		switch key {
		case "inputSchema":
			d.input = data
		case "outputSchema":
			d.output = data
		}
	}
	canonical, err := events.AppendJSON(nil, pinned)
	if err != nil {
		return nil, fmt.Errorf("read tool %.80q: %w", tool.Name, err)
	}
	sum := sha256.Sum256(canonical)
	d.digest = "sha256:" + hex.EncodeToString(sum[:])
	if a := tool.Annotations; a != nil {
		d.readOnly, d.idempotent = a.ReadOnlyHint, a.IdempotentHint
	}
	return d, nil
}
