package events_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
)

func TestFrontendCasesHaveTheirPayloadAndVisibility(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/agent-messages/frontend.jsonl")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(data)) {
		var c struct {
			Name   string         `json:"name"`
			Kind   string         `json:"kind"`
			Event  map[string]any `json:"event"`
			Expect struct {
				Payload map[string]any `json:"payload"`
				Shown   bool           `json:"shown"`
				Text    string         `json:"text"`
			} `json:"expect"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &c))
		n++
		before, err := json.Marshal(c.Event)
		require.NoError(t, err)
		if c.Kind == "flatten" {
			require.Equal(t, c.Expect.Payload, events.ComponentPayload(c.Event), c.Name)
		} else {
			text, shown := events.Visible(c.Event)
			require.Equal(t, c.Expect.Shown, shown, c.Name)
			require.Equal(t, c.Expect.Text, text, c.Name)
		}
		after, err := json.Marshal(c.Event)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), c.Name)
	}
	require.Equal(t, 30, n)
}

func TestOnlyTrueHides(t *testing.T) {
	t.Parallel()
	for event, shown := range map[string]bool{
		`{"kind": "chat.text", "content": "x", "ui_hidden": "true"}`:                                                  true,
		`{"kind": "text", "content": "x", "ui_hidden": 1}`:                                                            true,
		`{"kind": "chat.print", "content": "x", "ui_hidden": true}`:                                                   false,
		`{"kind": "chat.tool_response", "interaction_type": "auto_tool", "success": true, "content": "x"}`:            false,
		`{"kind": "chat.tool_response", "interaction_type": "auto_tool", "success": "true", "content": "x"}`:          true,
		`{"kind": "tool_call", "interaction_type": "auto_tool", "success": true, "content": "x"}`:                     true,
		`{"kind": "chat.tool_response", "interaction_type": "auto_tool", "success": true, "content": "x", "data": 1}`: false,
	} {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(event), &e))
		_, got := events.Visible(e)
		require.Equal(t, shown, got, event)
	}
	require.Nil(t, events.ComponentPayload(nil))
	outside := map[string]any{"interaction_type": "auto_tool", "tool_args": events.Blob{Blob: "b", SHA256: "s", Size: 7}.Shown()}
	require.Equal(t, outside, events.ComponentPayload(map[string]any{"payload": outside}), "arguments in a blob are fetched before")
	require.Nil(t, events.ComponentPayload(map[string]any{"payload": "text"}))
	require.Equal(t, map[string]any{"": map[string]any{"a": 1}, "interaction_type": "auto_tool"}, events.ComponentPayload(map[string]any{
		"component_type": nil, "payload": map[string]any{"interaction_type": "auto_tool", "tool_args": map[string]any{"": map[string]any{"a": 1}}},
	}), "no component has the empty name")
}
