package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/oneturntest"
)

// Modes of the counterpart, besides the protocol that both speak best.
const (
	envMode = "MCP_COUNTERPART"

	modern = "modern"
	legacy = "legacy" // speaks no version after 2025-11-25
	noisy  = "noisy"  // prints other texts than messages on its standard output
	broken = "broken" // does not start
	parent = "parent" // starts a process that ignores its end
	deaf   = "deaf"   // does not end when its input is closed
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(envMode); mode != "" {
		if err := serve(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // the main function of a separate process
		}
		return
	}
	oneturntest.VerifyNoLeaks(m)
}

// serve is the main function of a server on stdio.
func serve(mode string) error {
	fmt.Fprintln(os.Stderr, "the counterpart has started with", os.Getenv("SECRET"))
	switch mode {
	case broken:
		return fmt.Errorf("no database: %s", os.Getenv("SECRET"))
	case parent:
		child := exec.Command("sleep", "600") //nolint:noctx // it must outlive its parent
		if err := child.Start(); err != nil {
			return err
		}
		if err := os.WriteFile(os.Getenv("PID_FILE"), []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil {
			return err
		}
	case deaf:
		defer func() { select {} }()
	}
	if p, is := peers[mode]; is {
		return p.serve()
	}
	if hostile[mode] != nil {
		return serveHostile(mode)
	}
	s := newServer(mode, func(context.Context) { os.Exit(7) }) //nolint:forbidigo // it crashes
	if mode == noisy {
		fmt.Println("Welcome! [INFO] {not json}")                           //nolint:forbidigo // what such servers do
		fmt.Print("no newline follows: ", "{\"level\":\"info\"}", "\n\n\t") //nolint:forbidigo // what such servers do
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				fmt.Println("handling", method) //nolint:forbidigo // what such servers do
				fmt.Print("progress: 10%... ")  //nolint:forbidigo // what such servers do
				return next(ctx, method, req)
			}
		})
	}
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// newServer makes a server of the functions of the suite.
func newServer(mode string, crash func(context.Context)) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "counterpart", Version: "1"}, &mcp.ServerOptions{PageSize: 5})
	if mode == legacy {
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "server/discover" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found"}
				}
				return next(ctx, method, req)
			}
		})
	}
	s.AddTool(&mcp.Tool{Name: "environment", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return structured(os.Environ())
		})
	for _, name := range []string{
		"echo", "fail_user", "fail", "busy", "slow", "crash", "progress", "big", "identity", "ask", "null", "garbage", "text", "huge",
	} {
		tool := &mcp.Tool{Name: name, Description: name + " of the suite", InputSchema: json.RawMessage(`{"type":"object"}`)}
		if name == "garbage" { // any text is a result, unless it has to be a structure
			tool.OutputSchema = json.RawMessage(`{"type":"object","required":["text"]}`)
		}
		s.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if name == "ask" && mode != legacy {
				return asks(req)
			}
			return run(ctx, name, req, crash)
		})
	}
	return s
}

func form() *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: "Which color?", RequestedSchema: json.RawMessage(
		`{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`)}
}

// asks asks by a result, as servers do since 2026-07-28.
func asks(req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answer, ok := req.Params.InputResponses["color"].(*mcp.ElicitResult)
	if !ok {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"color": form()}, RequestState: "parked"}, nil
	}
	if req.Params.RequestState != "parked" || answer.Action != "accept" {
		return failed(errors.New("no color was chosen")), nil
	}
	return structured(map[string]any{"color": answer.Content["color"]})
}

func structured(v any) (*mcp.CallToolResult, error) {
	data, err := json.Marshal(v)
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(data), Content: []mcp.Content{}}, err
}

// run has the suite do what a function does.
func run(ctx context.Context, name string, req *mcp.CallToolRequest, crash func(context.Context)) (*mcp.CallToolResult, error) {
	meta := func(key string) string { return fmt.Sprint(req.Params.Meta[key]) }
	var id conformance.Identity
	id.IdempotencyKey = meta(mcptool.MetaIdempotencyKey)
	id.FencingToken, _ = strconv.ParseUint(meta(mcptool.MetaFencingToken), 10, 64)
	id.Epoch, _ = strconv.Atoi(meta(mcptool.MetaEpoch))
	id.Attempt, _ = strconv.Atoi(meta(mcptool.MetaAttempt))
	id.Depth, _ = strconv.Atoi(meta(mcptool.MetaDepth))
	host := conformance.Host{
		Crash:    func() { crash(ctx) },
		Identity: id,
		Progress: func(ctx context.Context, percent float64, message string) error {
			return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: req.Params.GetProgressToken(), Progress: percent / 10, Total: 10, Message: message,
			})
		},
		Ask: func(ctx context.Context, _ string) (json.RawMessage, error) {
			answer, err := req.Session.Elicit(ctx, form())
			if err != nil {
				return nil, err
			}
			if answer.Action != "accept" {
				return nil, errors.New("no color was chosen")
			}
			return json.Marshal(answer.Content["color"])
		},
	}
	result, err := conformance.Function(ctx, name, req.Params.Arguments, host)
	switch {
	case err != nil:
		return failed(err), nil
	case name == "text":
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	case !json.Valid(result):
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(result)}}}, nil
	case result == nil:
		return &mcp.CallToolResult{}, nil
	}
	return &mcp.CallToolResult{StructuredContent: result, Content: []mcp.Content{&mcp.TextContent{Text: string(result)}}}, nil
}

// failed adds in _meta what the protocol has no fields for.
func failed(err error) *mcp.CallToolResult {
	r := &mcp.CallToolResult{IsError: true, Meta: mcp.Meta{mcptool.MetaCode: string(events.CodeOf(err))}}
	if tools.IsRetryable(err) {
		r.Meta[mcptool.MetaRetryable] = true
	}
	text := err.Error()
	if _, msg, ok := strings.Cut(text, "_error: "); ok {
		text = msg
	}
	r.Content = []mcp.Content{&mcp.TextContent{Text: text}}
	return r
}
