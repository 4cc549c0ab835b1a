package mcptool_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// gate answers messages with a status instead of the server's answer, as long as it is closed.
type gate struct {
	status atomic.Int32
	header http.Header
	seen   atomic.Pointer[http.Request]
}

func (g *gate) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.seen.Store(r)
		status := int(g.status.Load())
		if status == 0 || r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		for name := range g.header {
			w.Header().Set(name, g.header.Get(name))
		}
		w.WriteHeader(status)
	})
}

func TestStatusDecidesWhetherACallHasBegun(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		again bool
		text  string
	}{
		http.StatusTooManyRequests:     {true, "has not taken the call"},
		http.StatusServiceUnavailable:  {true, "has not taken the call"},
		http.StatusUnauthorized:        {false, "does not accept the headers"},
		http.StatusInternalServerError: {false, "may or may not have happened"},
		http.StatusBadGateway:          {false, "may or may not have happened"},
		http.StatusGatewayTimeout:      {false, "may or may not have happened"},
	} {
		for _, mode := range []string{modern, legacy} {
			g := &gate{header: http.Header{"Retry-After": {"7"}}}
			s := newScripted(t, mode, g.wrap)
			tool := opened(t, s.tool(anyObject, returns(text("ok"))), mcptool.Options{})
			require.Equal(t, `"ok"`, value(t, tool, `{}`))
			g.status.Store(int32(status))
			err := fails(t, tool, `{}`, events.CodeToolError)
			wait, again := tools.RetryDelay(err)
			require.Equal(t, want.again, again, "%d: %v", status, err)
			if again {
				require.Equal(t, 7*time.Second, wait)
			}
			require.ErrorContains(t, err, want.text)
			g.status.Store(0)
			require.Equal(t, `"ok"`, value(t, tool, `{}`))
		}
	}
}

func TestSessionThatTheServerHasForgottenIsReplaced(t *testing.T) {
	t.Parallel()
	first := true
	s := newScripted(t, legacy, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Session-Id") != "" && r.Method == http.MethodPost && r.Header.Get("X-Forget") == "" && r.ContentLength > 150 && first {
				first = false // a call
				http.NotFound(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	o := mcptool.Options{Servers: mcptool.NewServers(mcptool.Options{})}
	tool := opened(t, s.tool(anyObject, returns(text("ok"))), o)
	require.Equal(t, `"ok"`, value(t, tool, `{}`))
	require.False(t, first)
	require.Equal(t, uint64(2), o.Servers.Stats().Started)
}

func TestHeadersComeFromFilesAndStayOutOfErrors(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("CANARY-1\n"), 0o600))
	g := &gate{}
	s := newScripted(t, modern, g.wrap)
	s.at.Headers = map[string]target.Value{"Authorization": {File: file, Prefix: "Bearer "}}
	tool := opened(t, s.tool(anyObject, returns(text("ok"))), mcptool.Options{})
	require.Equal(t, `"ok"`, value(t, tool, `{}`))
	require.Equal(t, "Bearer CANARY-1", g.seen.Load().Header.Get("Authorization"))
	require.NoError(t, os.WriteFile(file, []byte("CANARY-2\n"), 0o600))
	require.Equal(t, `"ok"`, value(t, tool, `{}`))
	require.Equal(t, "Bearer CANARY-2", g.seen.Load().Header.Get("Authorization"))
	g.status.Store(http.StatusForbidden)
	require.NotContains(t, fails(t, tool, `{}`, events.CodeToolError).Error(), "CANARY")
}

func TestServerThatCannotBeReachedIsRetryable(t *testing.T) {
	t.Parallel()
	for text, to := range map[string]*target.MCPServer{
		"connection refused": {Name: "s", URL: "http://127.0.0.1:1/mcp", Network: local()},
		"loopback":           {Name: "s", URL: "http://127.0.0.1:1/mcp", Network: target.Network{AllowHTTP: true}},
		"https":              {Name: "s", URL: "http://127.0.0.1:1/mcp"},
	} {
		err := fails(t, opened(t, &target.MCP{Server: to, Tool: "tool"}, mcptool.Options{}), `{}`, events.CodeToolError)
		require.True(t, tools.IsRetryable(err))
		require.Contains(t, strings.ToLower(err.Error()), text)
		require.NotContains(t, err.Error(), "127.0.0.1:1/mcp")
		require.ErrorContains(t, err, "servers: s")
	}
}

func TestEndpointThatIsNotAnMCPServerIsReported(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>"))
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	for path, want := range map[string]string{
		"/wrong": "it answers HTTP 404: there is no MCP server at this path; the tool was not entered",
		"/page":  `unsupported content type "text/html"`,
	} {
		to := &target.MCPServer{Name: "s", URL: s.URL + path, Network: local()}
		err := fails(t, opened(t, &target.MCP{Server: to, Tool: "tool"}, mcptool.Options{}), `{}`, events.CodeToolError)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "may have happened")
	}
}

func TestServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	s := newScripted(t, modern, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		})
	})
	t.Cleanup(func() { close(hang) })
	tool := opened(t, s.tool(anyObject, returns()), mcptool.Options{StartTimeout: 50 * time.Millisecond})
	err := fails(t, tool, `{}`, events.CodeToolError)
	require.ErrorContains(t, err, "not ready within 50ms")
	require.True(t, tools.IsRetryable(err))

	other := opened(t, &target.MCP{Server: s.at, Tool: "tool"}, mcptool.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = other.Invoke(ctx, newCall(t, "tool", `{}`))
	require.Equal(t, events.CodeTimeout, events.CodeOf(err))
	require.False(t, tools.IsRetryable(err))
}
