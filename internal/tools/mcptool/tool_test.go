package mcptool_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

func TestResultIsStructureElseTextElseContents(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	for want, contents := range map[string][]mcp.Content{
		`null`:                        {},
		`"plain text"`:                {text("plain text")},
		`"42"`:                        {text("42")},
		`{"id":12345678901234567890}`: {text(` {"id":12345678901234567890} `)},
		`[1,2]`:                       {text("[1,2]")},
		`"{\"a\":1,\"a\":2}"`:         {text(`{"a":1,"a":2}`)}, // no strict JSON is a text
		`"{not json <b>&"`:            {text("{not json <b>&")},
		`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`: {text("a"), text("b")},
		`[{"type":"image","mimeType":"image/png","data":"AAE="}]`: {&mcp.ImageContent{MIMEType: "image/png", Data: []byte{0, 1}}},
		`[{"type":"resource_link","uri":"file:///a","name":"a"}]`: {&mcp.ResourceLink{URI: "file:///a", Name: "a"}},
	} {
		tool := opened(t, s.tool(anyObject, returns(contents...)), mcptool.Options{})
		require.JSONEq(t, want, value(t, tool, `{}`))
	}
}

func TestResultHasToFitTheOutputSchema(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	s.AddTool(&mcp.Tool{
		Name: "tool", InputSchema: json.RawMessage(anyObject),
		OutputSchema: json.RawMessage(`{"type":"object","required":["n"],"properties":{"n":{"type":"integer","maximum":5},"s":{"type":"string"}}}`),
	}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: req.Params.Arguments, Content: []mcp.Content{}}, nil
	})
	tool := opened(t, &target.MCP{Server: s.at, Tool: "tool"}, mcptool.Options{})
	require.JSONEq(t, `{"n":5}`, value(t, tool, `{"n":5}`))
	require.Equal(t, `{"n":5}`, value(t, tool, `{"n":"5"}`), "the result is the one that was checked")
	err := fails(t, tool, `{"n":4711}`, events.CodeToolError)
	require.ErrorContains(t, err, "/n")
	require.NotContains(t, err.Error(), "4711")
	err = fails(t, tool, `{"n":6,"s":[]}`, events.CodeToolError)
	require.ErrorContains(t, err, "/n")
	require.ErrorContains(t, err, "/s", "all that is wrong is named")
}

func TestArgumentsAreCheckedBeforeTheyAreSent(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	calls := 0
	to := s.tool(`{"type":"object","required":["city"],"properties":{"city":{"type":"string"},"days":{"type":"integer","default":3}}}`,
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			calls++
			return &mcp.CallToolResult{StructuredContent: req.Params.Arguments}, nil
		})
	tool := opened(t, to, mcptool.Options{})
	err := fails(t, tool, `{"city":4711}`, events.CodeBadArgs)
	require.ErrorContains(t, err, "bad_str:city")
	require.NotContains(t, err.Error(), "4711")
	require.False(t, tools.IsRetryable(err))
	require.Zero(t, calls)
	require.JSONEq(t, `{"city":"Rome","days":3}`, value(t, tool, `{"city":"Rome"}`))
}

func TestUnknownToolIsNamedWithTheOneThatWasMeant(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	to := s.tool(anyObject, returns())
	err := fails(t, opened(t, &target.MCP{Server: to.Server, Tool: "tol"}, mcptool.Options{}), `{}`, events.CodeUnknownTool)
	require.ErrorContains(t, err, `did you mean "tool"?`)
}

func TestToolThatChangesIsRefusedUntilItIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{modern, legacy} {
		s := newScripted(t, mode, nil)
		first := `{"type":"object","properties":{"a":{"type":"string"}}}`
		to := s.tool(first, returns(text("ok")))
		tool := opened(t, to, mcptool.Options{})
		require.Equal(t, `"ok"`, value(t, tool, `{}`))

		s.tool(`{"type":"object","properties":{"a":{"type":"string"},"send_to":{"type":"string"}}}`, returns(text("other")))
		var err error
		require.Eventually(t, func() bool { // the server reports it at any time
			_, err = tool.Invoke(t.Context(), newCall(t, "tool", `{}`))
			return err != nil
		}, patience, tick)
		require.Equal(t, events.CodeToolError, events.CodeOf(err))
		require.ErrorContains(t, err, "re-read")
		require.False(t, tools.IsRetryable(err))

		require.Equal(t, `"other"`, value(t, opened(t, to, mcptool.Options{}), `{}`), "a tool that reads it again accepts it")
	}
}

func TestToolThatIsAnotherInTheNextSessionIsRefused(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	to := s.tool(anyObject, returns(text("ok")))
	o := options()
	o.IdleAfter = time.Millisecond
	o.Servers = mcptool.NewServers(o)
	tool := opened(t, to, o)
	require.Equal(t, `"ok"`, value(t, tool, `{}`))
	require.Eventually(t, func() bool { return o.Servers.Stats().Sessions == 0 }, patience, tick)
	s.tool(`{"type":"object","required":["a"]}`, returns(text("other")))
	require.ErrorContains(t, fails(t, tool, `{"a":1}`, events.CodeToolError), "re-read")
}

func TestDigestOfTheManifestPinsTheTool(t *testing.T) {
	t.Parallel()
	to := stdio(t, modern, 1)
	tool := opened(t, &target.MCP{Server: to, Tool: "echo"}, options())
	require.Equal(t, `{}`, value(t, tool, `{}`))
	known, ok := tool.Known()
	require.True(t, ok)

	pinned := opened(t, &target.MCP{Server: to, Tool: "echo", Digest: known.Version}, options())
	require.Equal(t, `{}`, value(t, pinned, `{}`))
	other := opened(t, &target.MCP{Server: to, Tool: "null", Digest: known.Version}, options())
	err := fails(t, other, `{}`, events.CodeToolError)
	require.ErrorContains(t, err, known.Version)
	require.ErrorContains(t, err, "pin it again")
}

func TestAnnotationsCountOnlyWhenTheyAreTrusted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hints   mcp.ToolAnnotations
		trusted bool
		effect  string
	}{
		{mcp.ToolAnnotations{ReadOnlyHint: true}, true, "none"},
		{mcp.ToolAnnotations{IdempotentHint: true}, true, "idempotent"},
		{mcp.ToolAnnotations{}, true, ""},
		{mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}, false, ""},
	} {
		s := newScripted(t, modern, nil)
		s.AddTool(&mcp.Tool{Name: "tool", Description: "described", Annotations: &c.hints, InputSchema: json.RawMessage(anyObject)}, returns())
		s.at.TrustAnnotations = c.trusted
		tool := opened(t, &target.MCP{Server: s.at, Tool: "tool"}, mcptool.Options{})
		_, known := tool.Known()
		require.False(t, known)
		d, err := tool.Describe(t.Context())
		require.NoError(t, err)
		require.Equal(t, c.effect, d.Effect)
		require.Equal(t, "described", d.Text)
		require.JSONEq(t, anyObject, string(d.Input))
	}
}

func TestFailureIsBoundedAndOnOneLine(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	long := make([]byte, 1<<20)
	for i := range long {
		long[i] = 'x'
	}
	to := s.tool(anyObject, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{text("first\r\nsecond"), text(string(long))}, Meta: mcp.Meta{
			mcptool.MetaCode: "interrupted", // not for a server to set
		}}, nil
	})
	err := fails(t, opened(t, to, mcptool.Options{}), `{}`, events.CodeToolError)
	require.ErrorContains(t, err, "first second x")
	require.Less(t, len(err.Error()), 1200)
}

func TestErrorsOfTheProtocolAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScripted(t, modern, nil)
	to := s.tool(anyObject, returns(text("ok")))
	tool := opened(t, to, mcptool.Options{})
	require.Equal(t, `"ok"`, value(t, tool, `{}`))
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/call" {
				return nil, wrong
			}
			return next(ctx, method, req)
		}
	})
	err := fails(t, tool, `{}`, events.CodeBadArgs)
	require.ErrorContains(t, err, "it does not like them")
	require.False(t, tools.IsRetryable(err))
}
