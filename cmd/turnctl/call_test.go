package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/oneturntest"
)

// workflowsOf writes files into a folder of workflows.
func workflowsOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

// atTerminal runs a command line before which a person sits who types.
func atTerminal(t *testing.T, typed string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{
		env: func(string) (string, bool) { return "", false }, stdin: bytes.NewBufferString(typed), terminal: true,
		stdout: &out, stderr: cli.Locked(&errs), now: time.Now,
	}
	code = a.run(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestQuestionsOfACalledToolAreAskedOnTheTerminal(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{
		"W/oneturn.yaml": "agents: {A: {}}\ntools:\n- {name: paint, agent: A, file: paint.py, effect: replay}\n",
		"W/paint.py": `import oneturn


def paint():
    oneturn.show("Card", {"state": "asking"})
    schema = {"type": "object", "required": ["color"], "properties": {"color": {"enum": ["red", "blue"]}}}
    color = oneturn.ask("Card", {"title": "Which?"}, name="color", schema=schema)["color"]
    word = oneturn.ask("Card", {"title": "Word?", "maskInput": 1})
    return [color, word, oneturn.step("once", lambda: 1)]
`,
	})
	code, stdout, stderr := atTerminal(t, "green\n{\"color\": \"red\"}\nopen sesame\n", "call", "paint", "--workflows", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.JSONEq(t, `["red", "[secret]", 1]`, stdout)
	require.Contains(t, stderr, `paint shows Card: {"state":"asking"}`)
	require.Contains(t, stderr, `paint asks Card (question color): {"title":"Which?"}`)
	require.Contains(t, stderr, `answer, {color: "red" | "blue"}> the answer does not match the schema: the whole value: expected object, got string`)
	require.Contains(t, stderr, "secret")

	code, _, stderr = atTerminal(t, "", "call", "paint", "--workflows", dir)
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "standard input ended")
}

func TestTypedAnswerIsJSONIfItIsValidElseText(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{`{"a": 1}`: `{"a":1}`, "12": "12", "no": `"no"`, "": `""`, `{"a"`: `"{\"a\""`} {
		value, err := answerOf(line, func(answer json.RawMessage) (json.RawMessage, error) { return answer, nil })
		require.NoError(t, err)
		require.Equal(t, want, string(value))
	}
}

func TestCalledToolCannotUseANameTwice(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{
		"W/oneturn.yaml": "agents: {A: {}}\ntools:\n- {name: paint, agent: A, file: paint.py, effect: replay}\n",
		"W/paint.py": `import oneturn


def paint():
    oneturn.ask("Card", {}, name="color")
    return oneturn.ask("Card", {}, name="color")
`,
	})
	code, _, stderr := atTerminal(t, "red\n", "call", "paint", "--workflows", dir)
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "duplicate name color: each question or surface of a call needs a unique name")
}

// priceService answers quotes on NATS and describes its input.
func priceService(t *testing.T, nc *nats.Conn) {
	t.Helper()
	s, err := micro.AddService(nc, micro.Config{Name: "prices", Version: "1.4.0"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	require.NoError(t, s.AddEndpoint("quote", micro.HandlerFunc(func(r micro.Request) {
		_ = r.Respond(append([]byte(`{"asked":`), append(r.Data(), '}')...))
	}), micro.WithEndpointSubject("prices.quote"), micro.WithEndpointMetadata(map[string]string{
		"oneturn-effect": "none", "oneturn-input": `{"type":"object","required":["sku"],"properties":{"sku":{"type":"string"}}}`,
	})))
	require.NoError(t, nc.Flush())
}

func TestServiceIsCalledAndDescribesItself(t *testing.T) {
	t.Parallel()
	s := oneturntest.NewServer(t)
	priceService(t, s.Connect())
	dir := workflowsOf(t, map[string]string{
		"tools.oneturn.yaml": "tools:\n- {name: quote, nats: {service: prices, endpoint: quote, trust_metadata: true}}\n- {name: gone, nats: {service: absent, endpoint: x}}\n",
		"W/oneturn.yaml":     "agents: {A: {}}\ntools:\n- {use: quote, agent: A}\n",
	})
	require.JSONEq(t, `{"asked":{"sku":"a"}}`, ok(t, s, "call", "quote", `{"sku":"a"}`, "--workflows", dir))
	code, _, stderr := turnctl(t, s, "call", "quote", `{"sku":[]}`, "--workflows", dir)
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "call quote: bad_args: ")

	code, stdout, _ := turnctl(t, s, "tools", "ls", dir, "--live")
	require.Equal(t, cli.Failed, code, "one is not there")
	require.Contains(t, stdout, "    available; version 1.4.0; effect none; takes {sku: string}, gives any\n")
	require.Contains(t, stdout, "    cannot be called now: ")
	code, stdout, stderr = turnctl(t, s, "check", dir, "--live")
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, "tool gone cannot be called now")
	require.NotContains(t, stdout, "tool quote cannot")
}

// docsServer is an MCP server without an SDK: one tool, whose schema is in a file next to it.
const docsServer = `import json
import sys

for line in sys.stdin:
    m = json.loads(line)
    method, result = m.get("method"), None
    if method == "initialize":
        result = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "docs", "version": "1"}}
    elif method == "tools/list":
        with open("schema.json") as f:
            result = {"tools": [{"name": "search", "description": "Searches.", "inputSchema": json.load(f)}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "found " + m["params"]["arguments"]["q"]}]}
    elif "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "unknown method"}}), flush=True)
        continue
    if "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
`

func TestToolsOfServersAreCalledAndPinned(t *testing.T) {
	t.Parallel()
	const manifest = "servers: {docs: {command: [python3, server.py]}}\ntools:\n- {name: find, mcp: {server: docs, tool: search%s}}\n"
	dir := workflowsOf(t, map[string]string{
		"server.py": docsServer, "schema.json": `{"type":"object","required":["q"],"properties":{"q":{"type":"string"}}}`,
		"tools.oneturn.yaml": fmt.Sprintf(manifest, ""),
	})
	code, stdout, stderr := atTerminal(t, "", "call", "find", `{"q": "gold"}`, "--workflows", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.Equal(t, "\"found gold\"\n", stdout)

	pinned := func(want int) pin {
		code, stdout, stderr := atTerminal(t, "", "tools", "pin", dir, "-o", "json", "--timeout", "20s")
		require.Equal(t, want, code, "%s%s", stdout, stderr)
		pins := decodeText[[]pin](t, stdout)
		require.Len(t, pins, 1)
		require.Empty(t, pins[0].Error)
		return pins[0]
	}
	first := pinned(cli.Failed)
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, first.Digest)
	pinnedManifest := fmt.Sprintf(manifest, `, digest: "`+first.Digest+`"`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tools.oneturn.yaml"), []byte(pinnedManifest), 0o600))
	require.Equal(t, first.Digest, pinned(cli.OK).Pinned)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "schema.json"), []byte(`{"type":"object"}`), 0o600))
	require.NotEqual(t, first.Digest, pinned(cli.Failed).Digest)
	code, stdout, _ = atTerminal(t, "", "tools", "ls", dir, "--live", "--timeout", "20s")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stdout, "    cannot be called now: ")
	code, _, stderr = atTerminal(t, "", "call", "find", `{"q": "gold"}`, "--workflows", dir)
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "call find: tool_error: ")
}
