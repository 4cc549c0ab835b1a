package mcptool_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/mcptool"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// peer is a server of a protocol before 2026-07-28 that has a special way.
type peer struct {
	early   string // what it does about a request before initialize: exit, ignore; "" answers an error
	version string
	send    func(id json.RawMessage, result string) string // an answer; nil is as the protocol has it
	result  string                                         // of a call; "" is a text
	schema  string                                         // of its tool
}

const done = `{"content":[{"type":"text","text":"done"}]}`

func echoedAs(format string) func(json.RawMessage, string) string {
	return func(id json.RawMessage, result string) string { return fmt.Sprintf(format, id, result) }
}

var peers = map[string]peer{
	"peer exit":      {early: "exit"},
	"peer ignore":    {early: "ignore"},
	"peer text ids":  {send: echoedAs(`{"jsonrpc":"2.0","id":"%s","result":%s}`)},
	"peer unnamed":   {send: echoedAs(`{"id":%s,"result":%s}`)},
	"peer version 1": {send: echoedAs(`{"jsonrpc":"1.0","id":%s,"result":%s}`)},
	"peer both":      {send: echoedAs(`{"jsonrpc":"2.0","id":%s,"result":%s,"error":null}`)},
	"peer lines":     {send: echoedAs("{\n  \"jsonrpc\": \"2.0\",\n  \"id\": %s,\n  \"result\": %s\n}")},
	"peer mark":      {send: echoedAs("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}")},
	"peer future":    {version: "2099-01-01"},
	"peer nan":       {result: `{"content":[],"structuredContent":{"v":NaN}}`},
	"peer infinity":  {result: `{"content":[],"structuredContent":{"v":[1,-Infinity]}}`},
	"peer cut":       {result: `{"content":[],"structuredContent":{"v":[1`},
	"peer integer":   {result: `{"content":[],"structuredContent":{"v":1` + strings.Repeat("0", 80) + `}}`},
	"peer half":      {result: `{"content":[],"structuredContent":{"v":"cut \ud83d"}}`},
	"peer null":      {result: `{"content":null}`},
	"peer kind":      {result: `{"content":[{"type":"video","url":"x"}]}`},
	"peer look":      {schema: `{"type":"object","properties":{"x":{"type":"string","pattern":"^(?!a)b"}}}`},
}

// answer is what a peer answers a message, "" nothing; exit is set when it ends.
func (p peer) answer(line []byte, up *bool) (out string, exit bool) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil {
		return "", false
	}
	send := p.send
	if send == nil {
		send = echoedAs(`{"jsonrpc":"2.0","id":%s,"result":%s}`)
	}
	version, schema, result := p.version, p.schema, p.result
	if version == "" {
		version = "2025-06-18"
	}
	if schema == "" {
		schema = `{"type":"object"}`
	}
	if result == "" {
		result = done
	}
	switch {
	case m.Method == "initialize":
		*up = true
		return send(m.ID, `{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}`), false
	case !*up && p.early == "exit":
		return "", true
	case !*up && p.early == "ignore":
		return "", false
	case m.Method == "tools/list":
		return send(m.ID, `{"tools":[{"name":"tool","inputSchema":`+schema+`}]}`), false
	case m.Method == "tools/call":
		return send(m.ID, result), false
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID), false
}

// serve is the peer as a process.
func (p peer) serve() error {
	in := bufio.NewScanner(os.Stdin)
	var up bool
	for in.Scan() {
		out, exit := p.answer(in.Bytes(), &up)
		if exit {
			fmt.Fprintln(os.Stderr, "expect initialize request")
			os.Exit(1) //nolint:forbidigo // it is what it does
		}
		if out != "" {
			fmt.Println(out) //nolint:forbidigo // its protocol
		}
	}
	return in.Err()
}

// onHTTP is the peer on HTTP: as JSON, or as a stream of events.
func (p peer) onHTTP(t *testing.T, stream bool) *target.MCPServer {
	t.Helper()
	var mu sync.Mutex
	var up bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		out, exit := p.answer(body, &up)
		mu.Unlock()
		switch {
		case exit:
			panic(http.ErrAbortHandler) // closes the connection
		case out == "" && p.early == "ignore" && strings.Contains(string(body), "discover"):
			<-r.Context().Done()
		case out == "":
			w.WriteHeader(http.StatusAccepted)
		case stream:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "event: message\nid: 1\ndata: %s\n\n", strings.ReplaceAll(out, "\n", "\ndata: "))
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, out)
		}
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return &target.MCPServer{Name: "peer", URL: s.URL, Network: local(), Sessions: 1}
}

// ways are the servers that a peer is: as a process, on HTTP with JSON, with streams.
func ways(t *testing.T, name string) map[string]*target.MCPServer {
	t.Helper()
	return map[string]*target.MCPServer{
		"stdio": stdio(t, name, 1), "json": peers[name].onHTTP(t, false), "stream": peers[name].onHTTP(t, true),
	}
}

func TestServersOfOlderAndLooserKindsAreUsable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"peer exit": `"done"`, "peer ignore": `"done"`, "peer text ids": `"done"`, "peer unnamed": `"done"`, "peer version 1": `"done"`,
		"peer both": `"done"`, "peer lines": `"done"`, "peer mark": `"done"`, "peer null": "null", "peer look": `"done"`,
	} {
		for way, to := range ways(t, name) {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				o := options()
				o.ProbeTimeout = 300 * time.Millisecond
				tool := opened(t, &target.MCP{Server: to, Tool: "tool"}, o)
				begin := time.Now()
				require.JSONEq(t, want, value(t, tool, `{}`))
				require.JSONEq(t, want, value(t, tool, `{}`))
				require.Less(t, time.Since(begin), patience)
			})
		}
	}
}

func TestAnswersThatCannotBeReadFailImmediatelyWithTheReason(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"peer future": `it speaks the protocol version "2099-01-01"`, "peer nan": "it has NaN where a value is expected",
		"peer infinity": "it has -Infinity where a value is expected", "peer cut": "its answer is not JSON",
		"peer integer": "its result cannot be used: ", "peer half": "its result cannot be used: ", "peer kind": "video",
	} {
		for way, to := range ways(t, name) {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				tool := opened(t, &target.MCP{Server: to, Tool: "tool"}, options())
				begin := time.Now()
				err := fails(t, tool, `{}`, events.CodeToolError)
				require.ErrorContains(t, err, want)
				require.Equal(t, name == "peer future", tools.IsRetryable(err), "%v", err)
				require.Less(t, time.Since(begin), patience)
			})
		}
	}
}

// forgetful is a server on HTTP that answers with a status once it has forgotten its sessions.
func forgetful(t *testing.T, status int, body string) (to *target.MCPServer, forget func()) {
	t.Helper()
	var mu sync.Mutex
	known := map[string]*bool{}
	next := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("Mcp-Session-Id")
		if strings.Contains(string(sent), `"initialize"`) {
			next++
			id = fmt.Sprint("session-", next)
			known[id] = new(bool)
			w.Header().Set("Mcp-Session-Id", id)
		}
		if known[id] == nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
		out, _ := peer{}.answer(sent, known[id])
		if out == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, out)
	}))
	t.Cleanup(s.Close)
	return &target.MCPServer{Name: "peer", URL: s.URL, Network: local(), Sessions: 1}, func() {
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(known, func(string, *bool) bool { return true })
	}
}

func TestSessionThatTheServerHasLostIsOpenedAgain(t *testing.T) {
	t.Parallel()
	const refused = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":%q}}`
	for name, c := range map[string]struct {
		status int
		body   string
		late   bool // for the next call
	}{
		"404":                 {http.StatusNotFound, fmt.Sprintf(refused, "Session not found"), false},
		"404 without a word":  {http.StatusNotFound, "", false},
		"400":                 {http.StatusBadRequest, fmt.Sprintf(refused, "Bad Request: No valid session ID provided"), false},
		"400 initialize":      {http.StatusBadRequest, "Bad Request: Server not initialized", false},
		"400 without a word":  {http.StatusBadRequest, "", true},
		"503":                 {http.StatusServiceUnavailable, "", true},
		"500":                 {http.StatusInternalServerError, "", true},
		"410":                 {http.StatusGone, "", true},
		"200 with the answer": {http.StatusOK, fmt.Sprintf(refused, "Session not found"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, forget := forgetful(t, c.status, c.body)
			o := mcptool.Options{Servers: mcptool.NewServers(options())}
			tool := opened(t, &target.MCP{Server: to, Tool: "tool"}, o)
			require.Equal(t, `"done"`, value(t, tool, `{}`))
			forget()
			if c.late {
				_, err := tool.Invoke(t.Context(), newCall(t, "tool", `{}`))
				require.Error(t, err)
			}
			require.Equal(t, `"done"`, value(t, tool, `{}`))
			require.Equal(t, uint64(2), o.Servers.Stats().Started)
		})
	}
}
