package mcptool_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

const (
	patience = 20 * time.Second
	tick     = 5 * time.Millisecond
)

var wrong = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "it does not like them"}

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) options() mcptool.Options {
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return o
}

func TestServerThatDoesNotStartIsRetryableAndRests(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("CANARY-4711\n"), 0o600))
	var log journal
	to := stdio(t, broken, 1)
	to.Env["SECRET"] = target.Value{File: secret}
	tool := opened(t, &target.MCP{Server: to, Tool: "echo"}, log.options())
	err := fails(t, tool, `{}`, events.CodeToolError)
	require.True(t, tools.IsRetryable(err))
	require.ErrorContains(t, err, "exit status 1")
	require.ErrorContains(t, err, "no database: [secret]")
	require.ErrorContains(t, err, "the tool was not entered")
	require.ErrorContains(t, err, "servers: counterpart: command")

	_, err = tool.Invoke(t.Context(), newCall(t, "echo", `{}`))
	wait, again := tools.RetryDelay(err)
	require.True(t, again)
	require.Positive(t, wait)
	require.ErrorContains(t, err, "is not called for now, after 1 failure in a row; the tool was not entered")
	require.Equal(t, 2, strings.Count(log.String(), "MCP server started"), "with the first request of either protocol; it rests before the next try")
	require.NotContains(t, log.String(), "CANARY-4711")
}

func TestProgramThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"no-such-mcp-server", "./no-such-mcp-server"} {
		to := &target.MCPServer{Name: "files", Command: []string{command}, Dir: t.TempDir()}
		err := fails(t, opened(t, &target.MCP{Server: to, Tool: "echo"}, mcptool.Options{}), `{}`, events.CodeToolError)
		require.True(t, tools.IsRetryable(err))
		require.ErrorContains(t, err, "no-such-mcp-server")
		require.ErrorContains(t, err, "servers: files: command")
	}
}

func TestServerSeesOnlyTheEnvironmentItMay(t *testing.T) { //nolint:paralleltest // sets the environment
	for _, name := range []string{"ONETURN_NATS_PASSWORD", "NATS_CREDS", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"} {
		t.Setenv(name, "x")
	}
	to := stdio(t, modern, 1)
	to.Env["MINE"] = target.Value{Text: "yes"}
	seen := value(t, opened(t, &target.MCP{Server: to, Tool: "environment"}, options()), `{}`)
	require.Contains(t, seen, `"MINE=yes"`)
	require.Contains(t, seen, `"PATH=`)
	for _, name := range []string{"ONETURN_", "NATS_", "AWS_", "OPENAI_"} {
		require.NotContains(t, seen, name)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	o := options()
	o.IdleAfter = time.Millisecond
	o.Servers = mcptool.NewServers(o)
	tool := opened(t, &target.MCP{Server: stdio(t, modern, 1), Tool: "echo"}, o)
	for started := range uint64(2) {
		require.Equal(t, `{}`, value(t, tool, `{}`))
		require.Eventually(t, func() bool { return o.Servers.Stats().Sessions == 0 }, patience, tick)
		require.Equal(t, started+1, o.Servers.Stats().Started)
	}
	require.Zero(t, o.Servers.Stats().Died)
}

func TestMessageOverTheLimitIsTooLargeAndCostsTheSession(t *testing.T) {
	t.Parallel()
	o := options()
	o.MaxResult = 1000
	o.Servers = mcptool.NewServers(o)
	to := stdio(t, modern, 1)
	big := opened(t, &target.MCP{Server: to, Tool: "big"}, o)
	err := fails(t, big, fmt.Sprintf(`{"bytes":%d}`, 2<<20), events.CodeTooLarge)
	require.False(t, tools.IsRetryable(err))
	require.JSONEq(t, `{"text":"xxx"}`, value(t, big, `{"bytes":3}`))
	require.Equal(t, uint64(2), o.Servers.Stats().Started)
}

func TestWhatAServerHasStartedEndsWithIt(t *testing.T) {
	t.Parallel()
	to := stdio(t, parent, 1)
	file := filepath.Join(t.TempDir(), "pid")
	to.Env["PID_FILE"] = target.Value{Text: file}
	tool := mcptool.New(&target.MCP{Server: to, Tool: "echo"}, options())
	require.Equal(t, `{}`, value(t, tool, `{}`))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(data))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, tool.Close(t.Context()))
	require.Eventually(t, func() bool { // it is not a child of the test any more
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(state), ") Z ")
	}, patience, tick)
}

func TestCloseCutsOffCallsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	o := options()
	o.Grace = 50 * time.Millisecond
	tool := mcptool.New(&target.MCP{Server: stdio(t, deaf, 1), Tool: "slow"}, o)
	note := filepath.Join(t.TempDir(), "note")
	done := make(chan error, 1)
	call := newCall(t, "slow", fmt.Sprintf(`{"seconds":600,"note":%q}`, note))
	go func() {
		_, err := tool.Invoke(t.Context(), call)
		done <- err
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(note); return err == nil }, patience, tick)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, tool.Close(ctx), "1 calls were cut off")
	err := <-done
	require.Equal(t, events.CodeToolError, events.CodeOf(err))
	require.False(t, tools.IsRetryable(err))
	_, err = tool.Invoke(t.Context(), newCall(t, "slow", `{}`))
	require.True(t, tools.IsRetryable(err))
}

func TestServerThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	o := options()
	o.Grace = 50 * time.Millisecond
	tool := mcptool.New(&target.MCP{Server: stdio(t, deaf, 1), Tool: "echo"}, o)
	require.Equal(t, `{}`, value(t, tool, `{}`))
	require.NoError(t, tool.Close(t.Context()))
}

func TestToolsOfOneServerShareItsSessions(t *testing.T) {
	t.Parallel()
	servers := mcptool.NewServers(options())
	to := stdio(t, modern, 1)
	same := *to // as another version of the manifest names it
	a := mcptool.New(&target.MCP{Server: to, Tool: "echo"}, mcptool.Options{Servers: servers})
	b := mcptool.New(&target.MCP{Server: &same, Tool: "null"}, mcptool.Options{Servers: servers})
	require.Equal(t, `{}`, value(t, a, `{}`))
	require.Equal(t, `null`, value(t, b, `{}`))
	require.Equal(t, mcptool.Stats{Sessions: 1, Started: 1}, servers.Stats())
	require.NoError(t, a.Close(t.Context()))
	require.Equal(t, `null`, value(t, b, `{}`))
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, b.Close(t.Context()))
}
