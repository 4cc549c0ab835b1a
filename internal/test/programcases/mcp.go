package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/internal/tools/mcptool"
)

// mcpServerName is the name of the MCP server in manifests.
const mcpServerName = "case"

// startMCP starts an MCP server with the tools of a case that are on one. Its runs are recorded in the ledger.
func startMCP(c *Case, ledger *Ledger) (*http.Server, string, error) {
	s := mcp.NewServer(&mcp.Implementation{Name: mcpServerName, Version: "1"}, nil)
	for _, name := range c.toolNames() {
		if t := c.Tools[name]; t.onMCP() {
			described := &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
			if t.Input != nil {
				described.InputSchema = t.Input
			}
			if t.Output != nil {
				described.OutputSchema = t.Output
			}
			s.AddTool(described, mcpTool(name, t.Behaviour.Result, ledger))
		}
	}
	return serveLocally(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
}

// mcpTool returns a tool that always has the same result.
func mcpTool(name string, result json.RawMessage, ledger *Ledger) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		meta := func(key string) string { return fmt.Sprint(r.Params.Meta[key]) }
		token, _ := strconv.ParseUint(meta(mcptool.MetaFencingToken), 10, 64) // 0 if there is none
		epoch, _ := strconv.Atoi(meta(mcptool.MetaEpoch))
		_, left, err := ledger.enter(ledgerLine{
			Tool: name, Call: meta(mcptool.MetaCall), Args: r.Params.Arguments, Key: meta(mcptool.MetaIdempotencyKey), Token: token, Epoch: epoch,
		})
		if err != nil {
			return nil, err
		}
		defer func() { left(ctx.Err() != nil) }()
		var out mcp.CallToolResult
		if err := json.Unmarshal(result, &out); err != nil {
			return nil, fmt.Errorf("result of the case: %w", err)
		}
		return &out, nil
	}
}
