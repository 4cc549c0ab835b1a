package mcptool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// step calls a tool as a step of a program.
func step(t *testing.T, tool tools.Invoker) (tools.Result, error) {
	t.Helper()
	call := newCall(t, "tool", `{}`)
	call.Program = true
	return tool.Invoke(t.Context(), call)
}

func TestResultOfAStepIsAnObjectThatReferencesCanRead(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	for want, contents := range map[string][]mcp.Content{
		`{"text":""}`:                     {},
		`{"text":"plain <b>& text"}`:      {text("plain <b>& text")},
		`{"text":"[1,2]"}`:                {text("[1,2]")},
		`{"id":12345678901234567890}`:     {text(" {\"id\":12345678901234567890}\n")},
		`{"text":"{\"a\":1,\"a\":2}"}`:    {text(`{"a":1,"a":2}`)},
		`{"text":"{\"a\":1}\n{\"b\":2}"}`: {text(`{"a":1}`), text(`{"b":2}`)},
		`{"n":1}`:                         {&mcp.ImageContent{MIMEType: "image/png", Data: []byte{0, 1}}, text(`{"n":1}`)},
		`{"text":"","content":[{"type":"resource_link","uri":"file:///a","name":"a"}]}`: {&mcp.ResourceLink{URI: "file:///a", Name: "a"}},
	} {
		result, err := step(t, opened(t, s.tool(anyObject, returns(contents...)), mcptool.Options{}))
		require.NoError(t, err)
		require.Equal(t, canonical(t, json.RawMessage(want)), canonical(t, result.Value))
	}
	structured := s.tool(anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"hits":12}`), Content: []mcp.Content{text(`{"hits":1}`)}}, nil
	})
	result, err := step(t, opened(t, structured, mcptool.Options{}))
	require.NoError(t, err)
	require.JSONEq(t, `{"hits":12}`, string(result.Value))
}

func canonical(t *testing.T, v json.RawMessage) string {
	t.Helper()
	data, err := events.AppendJSON(nil, v)
	require.NoError(t, err)
	return string(data)
}

func TestTextOfAStepHasToFitTheOutputSchema(t *testing.T) {
	t.Parallel()
	s := newScripted(t, legacy, nil)
	for content, ok := range map[string]bool{`{"hits":3}`: true, `{"hits":"many"}`: false, "three": false} {
		s.AddTool(&mcp.Tool{
			Name: "tool", InputSchema: json.RawMessage(anyObject),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"hits":{"type":"integer"}},"required":["hits"]}`),
		}, returns(text(content)))
		result, err := step(t, opened(t, &target.MCP{Server: s.at, Tool: "tool"}, mcptool.Options{}))
		if ok {
			require.NoError(t, err)
			require.JSONEq(t, content, string(result.Value))
			continue
		}
		require.Equal(t, events.CodeToolError, events.CodeOf(err))
		require.ErrorContains(t, err, "does not fit the output schema")
	}
}

func TestFailureOfAStepIsTheFirstText(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	to := s.tool(anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			IsError: true, StructuredContent: json.RawMessage(`{"error":"x"}`),
			Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte{0}}, text("index is rebuilding"), text("a stack trace")},
		}, nil
	})
	_, err := step(t, opened(t, to, mcptool.Options{}))
	require.ErrorContains(t, err, "index is rebuilding")
	require.NotContains(t, err.Error(), "stack")
	require.Equal(t, events.CodeToolError, events.CodeOf(err))
}

func TestSkillInTheMetaOfAResultIsReported(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	for want, meta := range map[string]any{"draft": map[string]any{"skill_id": "draft"}, "": "draft"} {
		to := s.tool(anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{}`), Meta: mcp.Meta{tools.MetaExecution: meta}}, nil
		})
		result, err := step(t, opened(t, to, mcptool.Options{}))
		require.NoError(t, err)
		require.Equal(t, want, result.Skill)
	}
}
