package mcptool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/test/conformance"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// stdio is the counterpart as a process.
func stdio(t *testing.T, mode string, sessions int) *target.MCPServer {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return &target.MCPServer{
		Name: "counterpart", Command: []string{self}, Dir: t.TempDir(), Env: map[string]target.Value{envMode: {Text: mode}},
		Sessions: sessions,
	}
}

// web is the counterpart as an HTTP server.
func web(t *testing.T, o mcp.StreamableHTTPOptions, wrap func(http.Handler) http.Handler) *target.MCPServer {
	t.Helper()
	mode := legacy
	if o.Stateless {
		mode = modern
	}
	server := newServer(mode, func(context.Context) {}) // see crashes
	var handler http.Handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &o)
	if wrap != nil {
		handler = wrap(handler)
	}
	s := httptest.NewServer(crashes(handler))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return &target.MCPServer{Name: "counterpart", URL: s.URL, Network: local()}
}

// crashes ends the handler of a call of crash, and with it the connection.
func crashes(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		var m struct {
			Params struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(data, &m) == nil && m.Params.Name == "crash" {
			_, _ = conformance.Function(r.Context(), "crash", m.Params.Arguments, conformance.Host{
				Crash: func() { panic(http.ErrAbortHandler) },
			})
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		next.ServeHTTP(w, r)
	})
}

func local() target.Network {
	return target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
}

// kit holds tools of one server.
type kit struct {
	t       *testing.T
	to      *target.MCPServer
	servers *mcptool.Servers
	tools   map[string]*mcptool.Tool
}

func newKit(t *testing.T, to *target.MCPServer, o mcptool.Options) *kit {
	t.Helper()
	k := &kit{t: t, to: to, servers: mcptool.NewServers(o), tools: map[string]*mcptool.Tool{}}
	return k
}

func (k *kit) tool(name string) *mcptool.Tool {
	return mcptool.New(&target.MCP{Server: k.to, Tool: name}, mcptool.Options{Servers: k.servers})
}

// all makes the tools of the suite.
func (k *kit) all() *kit {
	for _, name := range []string{
		"echo", "fail_user", "fail", "busy", "slow", "crash", "progress", "big", "identity", "ask", "null", "garbage", "text", "huge",
	} {
		k.tools[name] = k.tool(name)
	}
	return k
}

func (k *kit) close(ctx context.Context) error {
	for _, tool := range k.tools {
		if err := tool.Close(ctx); err != nil {
			return err
		}
	}
	require.Zero(k.t, k.servers.Stats().Sessions)
	return nil
}

func (k *kit) kind(name string) conformance.Kind {
	return conformance.Kind{
		Cannot: map[string]string{
			"marked": "the counterpart's SDK writes its messages", "nan": "the counterpart's SDK writes its messages",
			"lowly": "its results have no headers", "later": "its results name no delay",
		},
		Name: name, Invoker: func(function string) tools.Invoker { return k.tools[function] }, Close: k.close, MaxOutput: maxOutput,
		Answer: func(color string) (string, any) { return "color", map[string]any{"color": color} },
	}
}

const maxOutput = 1 << 20

func options() mcptool.Options {
	return mcptool.Options{MaxResult: maxOutput, IdleAfter: time.Minute, Grace: time.Second}
}

func TestServersOnStdioConform(t *testing.T) {
	t.Parallel()
	conformance.Run(t, newKit(t, stdio(t, noisy, 4), options()).all().kind("stdio, printing junk"))
	old := newKit(t, stdio(t, legacy, 4), options()).all().kind("stdio, before 2026-07-28")
	old.Answer = func(color string) (string, any) { return "1", map[string]any{"color": color} }
	conformance.Run(t, old)
}

func TestServersOnHTTPConform(t *testing.T) {
	t.Parallel()
	conformance.Run(t, newKit(t, web(t, mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, nil), options()).all().kind("HTTP, stateless"))
	old := newKit(t, web(t, mcp.StreamableHTTPOptions{}, nil), options()).all().kind("HTTP, before 2026-07-28")
	old.Answer = func(color string) (string, any) { return "1", map[string]any{"color": color} }
	conformance.Run(t, old)
}
