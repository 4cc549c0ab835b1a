package mcptool_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// newCall makes a call with arguments as JSON.
func newCall(t *testing.T, name, args string) *tools.Call {
	t.Helper()
	tree, err := events.Decode([]byte(args))
	require.NoError(t, err)
	object, ok := tree.(map[string]any)
	require.True(t, ok)
	return &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, CallID: "turn", Name: name, Args: object,
		IdempotencyKey: "key", FencingToken: 1, Epoch: 1, Attempt: 1,
	}
}

// opened makes a tool that ends with the test.
func opened(t *testing.T, to *target.MCP, o mcptool.Options) *mcptool.Tool {
	t.Helper()
	tool := mcptool.New(to, o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		require.NoError(t, tool.Close(ctx))
	})
	return tool
}

// value calls a tool and returns its result.
func value(t *testing.T, tool tools.Invoker, args string) string {
	t.Helper()
	result, err := tool.Invoke(t.Context(), newCall(t, "tool", args))
	require.NoError(t, err)
	return string(result.Value)
}

// fails calls a tool and returns its error.
func fails(t *testing.T, tool tools.Invoker, args string, code events.Code) error {
	t.Helper()
	_, err := tool.Invoke(t.Context(), newCall(t, "tool", args))
	require.Error(t, err)
	require.Equal(t, code, events.CodeOf(err), "%v", err)
	return err
}

// scripted is a server on HTTP with one tool, which does what the test specifies.
type scripted struct {
	*mcp.Server

	at *target.MCPServer
}

func newScripted(t *testing.T, mode string, wrap func(http.Handler) http.Handler) scripted {
	t.Helper()
	var none mcp.ServerOptions
	s := scripted{Server: mcp.NewServer(&mcp.Implementation{Name: "scripted", Version: "1"}, &none)}
	var handler http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server },
		&mcp.StreamableHTTPOptions{Stateless: mode == modern, PropagateRequestCancellation: true})
	if wrap != nil {
		handler = wrap(handler)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		for session := range s.Sessions() { // what was forgotten by test
			_ = session.Close()
		}
	})
	s.at = &target.MCPServer{Name: "scripted", URL: web.URL, Network: local(), Sessions: 1}
	return s
}

const anyObject = `{"type":"object"}`

// tool adds the tool to the server, or replaces it.
func (s scripted) tool(input string, do func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) *target.MCP {
	s.AddTool(&mcp.Tool{Name: "tool", InputSchema: json.RawMessage(input)}, do)
	return &target.MCP{Server: s.at, Tool: "tool"}
}

// returns does nothing but return contents.
func returns(contents ...mcp.Content) func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: contents}, nil
	}
}

func text(s string) mcp.Content { return &mcp.TextContent{Text: s} }
