//go:build failpoints

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/tool"
)

// server is an MCP server with the tool.
func (c *counterpart) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "crash", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "work", InputSchema: json.RawMessage(`{"type":"object"}`)}, c.answerMCP)
	return s
}

func (c *counterpart) answerMCP(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	meta := func(key string) string { return fmt.Sprint(req.Params.Meta[key]) }
	j, call, err := parse(req.Params.Arguments, meta(mcptool.MetaIdempotencyKey), meta(mcptool.MetaFencingToken), meta(mcptool.MetaEpoch))
	if err != nil {
		return nil, err
	}
	if j.Questions > 0 {
		return c.askMCP(ctx, req, j, call)
	}
	if err := c.work(ctx, j, call, nil); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(result), Content: []mcp.Content{}}, nil
}

// askMCP is the tool that asks, as servers do since 2026-07-28: a call ends with a question, and
// the next one brings the answer and the names of all questions so far.
func (c *counterpart) askMCP(ctx context.Context, req *mcp.CallToolRequest, j job, call tool.CallInfo) (*mcp.CallToolResult, error) {
	asked := strings.FieldsFunc(req.Params.RequestState, func(r rune) bool { return r == ' ' })
	if len(asked) == 0 {
		if err := c.ledger.Enter(call); err != nil {
			return nil, err
		}
	} else {
		last := asked[len(asked)-1]
		if answer, ok := req.Params.InputResponses[last].(*mcp.ElicitResult); !ok || answer.Action != "accept" {
			return nil, fmt.Errorf("no answer to %s", last)
		}
		if err := c.ledger.Answered(call, askID(len(asked))); err != nil {
			return nil, err
		}
	}
	if n := len(asked); n < j.Questions {
		name := questionName(n)
		if err := c.ledger.Ask(call, askID(n+1)); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{RequestState: strings.Join(append(slices.Clone(asked), name), " "), InputRequests: mcp.InputRequestMap{
			name: &mcp.ElicitParams{Mode: "form", Message: "Really?", RequestedSchema: json.RawMessage(
				`{"type":"object","properties":{"yes":{"type":"boolean"},"by":{"type":"string"}},"required":["yes"]}`)},
		}}, nil
	}
	select {
	case <-time.After(time.Duration(j.Millis) * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(result), Content: []mcp.Content{}}, c.ledger.Exit(call)
}

// askID is the id that a worker gives the question of a round: with the round's number from the
// second on.
func askID(round int) string {
	name := questionName(round - 1)
	if round > 1 {
		name = fmt.Sprintf("%d/%s", round, name)
	}
	return events.AskID(name, 0)
}

// serveStdio is a server that a worker has started.
func (c *counterpart) serveStdio(ctx context.Context) error {
	return c.server().Run(ctx, &mcp.StdioTransport{})
}

// serveMCP is a server of streamable HTTP.
func (c *counterpart) serveMCP(ctx context.Context, address string) error {
	s := c.server()
	return c.listen(ctx, address, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}))
}

// listen serves until ctx ends. Where is in the file "address" of the folder.
func (c *counterpart) listen(ctx context.Context, address string, handler http.Handler) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.folder+"/address", []byte(l.Addr().String()), 0o600); err != nil {
		return err
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: deadline}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	_ = s.Serve(l) // until it is closed
	return nil
}
