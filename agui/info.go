package agui

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Info is the reply to GET /info of CopilotKit's runtime protocol, by which its clients find agents.
type Info struct {
	Version string // of the server
	Agents  map[string]AgentInfo
}

// AgentInfo is an agent. Its key in [Info] goes into URLs, partly without escaping: letters, digits, '_' and '-' are safe.
type AgentInfo struct {
	Name         string        `json:"name"`
	ClassName    string        `json:"className"`
	Description  string        `json:"description"`
	Capabilities *Capabilities `json:"capabilities,omitzero"`
}

// MarshalJSON writes the members that clients require: runs are streams (mode sse), and there is no transcription.
func (i Info) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(struct {
		Version string               `json:"version"`
		Mode    string               `json:"mode"`
		Audio   bool                 `json:"audioFileTranscriptionEnabled"`
		Agents  map[string]AgentInfo `json:"agents"`
	}{i.Version, "sse", false, i.Agents}, encodeOptions)
	if err != nil {
		return nil, fmt.Errorf("encode the info of the runtime: %w", err)
	}
	return b, nil
}
