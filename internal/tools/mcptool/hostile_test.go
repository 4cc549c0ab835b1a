package mcptool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

const (
	listed = `{"name":"tool","inputSchema":{"type":"object"}}`
	page   = `{"tools":[` + listed + `],"nextCursor":"%s"}`
)

// hostile are servers on stdio written by hand: what they send when their tools are listed for the
// n-th time.
var hostile = map[string]func(send func(format string, args ...any), id json.RawMessage, n int){
	"endless": func(send func(string, ...any), id json.RawMessage, n int) {
		send(`"id":%s,"result":`+page, id, strconv.Itoa(n))
	},
	"cursor": func(send func(string, ...any), id json.RawMessage, _ int) {
		send(`"id":%s,"result":`+page, id, strings.Repeat("x", 1<<20))
		select {} // nor does it read any more
	},
	"wordy": func(send func(string, ...any), id json.RawMessage, n int) {
		send(`"id":%s,"result":{"tools":[{"name":"t%d","inputSchema":{"type":"object","title":"%s"}}],"nextCursor":"%d"}`, id, n, strings.Repeat("x", 2<<20), n)
	},
	"asking": func(send func(string, ...any), _ json.RawMessage, _ int) {
		for i := 0; ; i++ {
			send(`"id":"%d","method":"ping"`, i)
		}
	},
	"stuck": func(send func(string, ...any), _ json.RawMessage, _ int) {
		send(`"id":"%s","method":"ping"`, strings.Repeat("x", 1<<20)) // the answer to it fills the pipe
		select {}
	},
	"talkative": func(send func(string, ...any), id json.RawMessage, _ int) {
		send(`"id":%s,"result":{"tools":[`+listed+`]}`, id)
	},
}

func serveHostile(mode string) error {
	in := bufio.NewScanner(os.Stdin)
	send := func(format string, args ...any) { fmt.Printf(`{"jsonrpc":"2.0",`+format+"}\n", args...) } //nolint:forbidigo // its protocol
	secret, err := json.Marshal("it was " + os.Getenv("SECRET"))
	if err != nil {
		return err
	}
	lists := 0
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments struct {
					How string `json:"how"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			return err
		}
		switch {
		case m.Method == "initialize":
			send(`"id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"hostile","version":"1"}}`, m.ID)
		case m.Method == "tools/list":
			lists++
			hostile[mode](send, m.ID, lists)
		case m.Method != "tools/call" && m.ID != nil:
			send(`"id":%s,"error":{"code":-32601,"message":"no such method"}`, m.ID)
		case m.Method != "tools/call":
		case m.Params.Arguments.How == "result":
			send(`"id":%s,"result":{"content":[{"type":"text","text":%s}]}`, m.ID, secret)
		case m.Params.Arguments.How == "structure":
			send(`"id":%s,"result":{"content":[],"structuredContent":{"text":%s}}`, m.ID, secret)
		case m.Params.Arguments.How == "failure":
			send(`"id":%s,"result":{"isError":true,"content":[{"type":"text","text":%s}]}`, m.ID, secret)
		case m.Params.Arguments.How == "refusal":
			send(`"id":%s,"error":{"code":-32000,"message":%s}`, m.ID, secret)
		case m.Params.Arguments.How == "log":
			fmt.Fprintln(os.Stderr, os.Getenv("SECRET"))
			send(`"id":%s,"result":{"content":[]`, m.ID) // of which nothing may be logged
		}
	}
	return in.Err()
}

func TestServerWithTooLargeDescriptionsIsRefused(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"endless": "more than 1000 pages", "cursor": "cursor of its list of tools has more than 4096 bytes", "wordy": "more than 16777216 bytes",
		"asking": "requests faster than it reads the answers", "stuck": "not ready within 1s",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := options()
			if mode == "stuck" {
				o.StartTimeout = time.Second
			}
			tool := mcptool.New(&target.MCP{Server: stdio(t, mode, 1), Tool: "tool"}, o)
			err := fails(t, tool, `{}`, events.CodeToolError)
			require.ErrorContains(t, err, want)
			require.True(t, tools.IsRetryable(err))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			require.NoError(t, tool.Close(ctx), "nothing of it is left")
		})
	}
}

func TestFileOfASecretThatIsMissingIsNamedInTheLogAlone(t *testing.T) {
	t.Parallel()
	to := stdio(t, "talkative", 1)
	to.Env["SECRET"] = target.Value{File: filepath.Join(t.TempDir(), "no-such-file")}
	var log journal
	err := fails(t, opened(t, &target.MCP{Server: to, Tool: "tool"}, log.options()), `{}`, events.CodeToolError)
	require.ErrorContains(t, err, "variable SECRET: a file that the tool's manifest names cannot be read")
	require.NotContains(t, err.Error(), "no-such-file")
	require.Contains(t, log.String(), "no-such-file")
	require.True(t, tools.IsRetryable(err))
}

func TestSecretOfAServerStaysOutOfItsResults(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("CANARY<\"1\">\nCANARY-2\n"), 0o600))
	to := stdio(t, "talkative", 1)
	to.Env["SECRET"] = target.Value{File: file}
	var log journal
	tool := opened(t, &target.MCP{Server: to, Tool: "tool"}, log.options())
	require.JSONEq(t, `"it was [secret]"`, value(t, tool, `{"how":"result"}`))
	require.JSONEq(t, `{"text":"it was [secret]"}`, value(t, tool, `{"how":"structure"}`))
	require.ErrorContains(t, fails(t, tool, `{"how":"failure"}`, events.CodeToolError), "it was [secret]")
	require.ErrorContains(t, fails(t, tool, `{"how":"refusal"}`, events.CodeToolError), "it was [secret]")
	require.ErrorContains(t, fails(t, tool, `{"how":"log"}`, events.CodeToolError), "its answer is not JSON")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "a message that cannot be read") }, patience, tick)
	require.NotContains(t, log.String(), "CANARY")
	require.NotContains(t, log.String(), "content")
}
