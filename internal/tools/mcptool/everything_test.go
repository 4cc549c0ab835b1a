//go:build everything

package mcptool_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/test/memhost"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// reference is the program of the reference server, see make mcp-everything.
func reference(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../../.ci/mcp-everything/node_modules/.bin/mcp-server-everything")
	require.NoError(t, err)
	require.FileExists(t, path, "run make mcp-everything")
	return path
}

func TestReferenceServerOnStdio(t *testing.T) {
	t.Parallel()
	useEverything(t, &target.MCPServer{
		Name: "everything", Command: []string{reference(t)}, Dir: t.TempDir(), Sessions: 1, TrustAnnotations: true,
	})
}

func TestReferenceServerOnHTTP(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), reference(t), "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, patience, tick)
	useEverything(t, &target.MCPServer{
		Name: "everything", URL: "http://127.0.0.1:" + port + "/mcp", Network: local(), Sessions: 1, TrustAnnotations: true,
	})
}

// useEverything calls what the reference server has.
func useEverything(t *testing.T, server *target.MCPServer) {
	t.Helper()
	servers := mcptool.NewServers(options())
	tool := func(name string) *mcptool.Tool {
		return opened(t, &target.MCP{Server: server, Tool: name}, mcptool.Options{Servers: servers})
	}
	echo := tool("echo")
	require.Equal(t, `"Echo: Grüße"`, value(t, echo, `{"message":"Grüße"}`))
	require.ErrorContains(t, fails(t, echo, `{"message":5}`, events.CodeBadArgs), "bad_str:message")
	known, ok := echo.Known()
	require.True(t, ok)
	require.Equal(t, "none", known.Effect)
	require.Contains(t, value(t, tool("get-sum"), `{"a":2,"b":40}`), "42")

	var weather map[string]any
	require.NoError(t, json.Unmarshal([]byte(value(t, tool("get-structured-content"), `{"location":"Chicago"}`)), &weather))
	require.Contains(t, weather, "temperature")

	image := value(t, tool("get-tiny-image"), `{}`)
	require.Contains(t, image, `"type":"image"`)
	require.Contains(t, image, `"mimeType":"image/png"`)
	require.Equal(t, 3, strings.Count(value(t, tool("get-resource-links"), `{"count":3}`), `"type":"resource_link"`))
	require.Contains(t, value(t, tool("get-resource-reference"), `{"resourceType":"Text","resourceId":1}`), `"type":"resource"`)

	host := &memhost.Host{}
	call := newCall(t, "tool", `{"duration":0.3,"steps":3}`)
	call.Host = host
	_, err := tool("trigger-long-running-operation").Invoke(t.Context(), call)
	require.NoError(t, err)
	require.Len(t, host.Reported(), 3)

	ask := tool("trigger-elicitation-request")
	host = &memhost.Host{}
	_, err = withHost(t, ask, host)
	require.ErrorIs(t, err, tools.ErrParked)
	host.Answer("1", map[string]any{"name": "Ada"})
	answered, err := withHost(t, ask, host)
	require.NoError(t, err)
	require.Contains(t, answered, "Ada")
	require.ErrorContains(t, fails(t, tool("no-such-tool"), `{}`, events.CodeUnknownTool), "no-such-tool")
}
