package mcptool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func ExampleNew() {
	type city struct {
		City string `json:"city"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "forecast"}, func(_ context.Context, _ *mcp.CallToolRequest, in city) (*mcp.CallToolResult, map[string]string, error) {
		return nil, map[string]string{in.City: "sun"}, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer web.Close()

	tool := mcptool.New(&target.MCP{Tool: "forecast", Server: &target.MCPServer{
		Name: "weather", URL: web.URL,
		Network: target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}}, mcptool.Options{})
	result, err := tool.Invoke(context.Background(), &tools.Call{Name: "forecast", Args: map[string]any{"city": "Rome"}})
	fmt.Println(string(result.Value), err)
	_, err = tool.Invoke(context.Background(), &tools.Call{Name: "forecast", Args: map[string]any{}})
	fmt.Println(events.CodeOf(err))
	fmt.Println(tool.Close(context.Background()))
	// Output:
	// {"Rome":"sun"} <nil>
	// bad_args
	// <nil>
}
