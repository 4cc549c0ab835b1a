package worker_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
)

const helloManifest = `
agents:
  Greeter: {model: Greeting}
models:
  Greeting:
    type: object
    required: [name]
    properties:
      name: {type: string}
tools:
  - {name: greet, kind: python, agent: Greeter, file: hello.py, function: greet}
`

// workflows writes a folder with the workflow Hello.
func workflows(t *testing.T, manifest, code string) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, "Hello/oneturn.yaml", manifest)
	write(t, root, "Hello/tools/hello.py", code)
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// F27: see docs/faults.md.
func TestEditedPythonToolAndManifestAreTakenOverWhileTheWorkerRuns(t *testing.T) {
	t.Parallel()
	s := server(t)
	root := workflows(t, helloManifest, "def greet(name):\n    return {'message': 'Hello, ' + name}\n")
	w := start(t, s, oneturn.Config{Workflows: root, Watch: true})
	c := client(t, s)
	run := func(key string) string {
		one := turn(key, map[string]any{"name": "Ada"})
		publish(t, c, one)
		return await(t, c, one.TurnID).Content
	}
	require.Equal(t, "Hello, Ada", run("1"))
	edit := func(name, text string) {
		before := w.Bindings().Digest()
		write(t, root, name, text)
		require.Eventually(t, func() bool { return w.Bindings().Digest() != before }, 10*time.Second, 5*time.Millisecond)
	}
	edit("Hello/tools/hello.py", "def greet(name):\n    return {'message': 'Bye, ' + name}\n")
	require.Equal(t, "Bye, Ada", run("2"))
}

func TestEveryBrokenEditIsLogged(t *testing.T) {
	t.Parallel()
	s := server(t)
	root := workflows(t, helloManifest, "def greet(name):\n    return name\n")
	log := &lockedBuffer{}
	start(t, s, oneturn.Config{Workflows: root, Watch: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	logged := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, 10*time.Second, 5*time.Millisecond, text)
	}
	write(t, root, "Hello/oneturn.yaml", strings.Replace(helloManifest, "function: greet", "function: grete", 1))
	logged("grete")
	write(t, root, "Hello/oneturn.yaml", strings.Replace(helloManifest, "function: greet", "function: gret", 1))
	logged(`\"gret\"`)
}

// TestProcessThatStartsAfterABrokenEditRunsTheCodeFromBefore: the version that is kept is
// kept for processes too.
func TestProcessThatStartsAfterABrokenEditRunsTheCodeFromBefore(t *testing.T) {
	t.Parallel()
	s := server(t)
	const code = "import os\ndef greet(name):\n    if name == 'die': os._exit(3)\n    return {'message': 'Hello, ' + name}\n"
	root := workflows(t, helloManifest, code)
	w := start(t, s, oneturn.Config{Workflows: root, Watch: true, Python: oneturn.Python{Children: 1}})
	c := client(t, s)
	run := func(key, name string) *oneturn.Response {
		one := turn(key, map[string]any{"name": name})
		publish(t, c, one)
		return await(t, c, one.TurnID)
	}
	require.Equal(t, "Hello, Ada", run("1", "Ada").Content)
	write(t, root, "Hello/tools/hello.py", "def greet(name):\n    return {'message': 'Half a fi\n")
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(w.Bindings().Diagnostics(), func(d bindings.Diagnostic) bool { return d.Code == "kept_previous" })
	}, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, events.CodeToolError, run("2", "die").Code, "its process is gone")
	require.Equal(t, "Hello, Bob", run("3", "Bob").Content)
}

// F27: one response, and no tool
// run after it.
func TestRejectedTurnStaysRejectedForOtherManifestsAndAfterTheFix(t *testing.T) {
	t.Parallel()
	s := server(t)
	ran := filepath.Join(t.TempDir(), "ran")
	code := "def greet(name):\n    open('" + ran + "', 'a').write('x')\n    return name\n"
	const strict = "\nagents:\n  Greeter: {model: Greeting}\nmodels:\n  Greeting:\n    type: object\n    required: [name]\n    properties:\n      name: {type: string, maxLength: 1}\ntools:\n  - {name: greet, kind: python, agent: Greeter, file: hello.py, function: greet}\n"
	root := workflows(t, strict, code)
	w := start(t, s, oneturn.Config{Workflows: root, Watch: true})
	c := client(t, s)
	one := turn("t", map[string]any{"name": "Ada"})
	publish(t, c, one)
	require.Equal(t, events.CodeValidationFailed, await(t, c, one.TurnID).Code)

	before := w.Bindings().Digest()
	write(t, root, "Hello/oneturn.yaml", helloManifest)
	require.Eventually(t, func() bool { return w.Bindings().Digest() != before }, 10*time.Second, 5*time.Millisecond)
	start(t, s, oneturn.Config{Workflows: workflows(t, helloManifest, code)}) // another worker that would run it
	publish(t, c, one, one)
	requireDrained(t, s)
	require.Equal(t, events.CodeValidationFailed, await(t, c, one.TurnID).Code)
	require.NoFileExists(t, ran)

	corrected := turn("t2", map[string]any{"name": "Ada"})
	corrected.CorrectionOf = "t"
	publish(t, c, corrected)
	require.True(t, await(t, c, corrected.TurnID).Success)
	require.FileExists(t, ran)
}

func TestWorkflowMayAskThatAReusedKeyRuns(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, oneturn.Config{Workflows: workflows(t, "on_key_reuse: run"+helloManifest, "def greet(name):\n    return {'message': name}\n")})
	c, nc := client(t, s), s.Connect()
	sub, err := nc.SubscribeSync("oneturn.events.*.*.*.*.tool_response")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	ada, bob := turn("t", map[string]any{"name": "Ada"}), turn("t", map[string]any{"name": "Bob"})
	publish(t, c, ada, bob, bob)
	requireDrained(t, s)
	for want, one := range map[string]*oneturn.Turn{"Ada": ada, "Bob": bob} {
		r, err := c.AwaitTurn(t.Context(), one)
		require.NoError(t, err)
		require.Equal(t, want, r.Content, "found by key and data")
	}
	got := map[any]string{}
	for range 2 {
		m, err := sub.NextMsg(10 * time.Second)
		require.NoError(t, err)
		body, err := events.Parse(m.Data)
		require.NoError(t, err)
		got[body.Data["content"]], _ = body.Data["tool_call_id"].(string)
	}
	require.Len(t, got, 2)
	require.NotEqual(t, got["Ada"], got["Bob"])
	_, err = sub.NextMsg(200 * time.Millisecond)
	require.Error(t, err, "the same data again is a duplicate")
}

// TestTurnsUnderAReusedKeyAreFoundByTheKey: also where ids are so long that names are hashes.
func TestTurnsUnderAReusedKeyAreFoundByTheKey(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, oneturn.Config{Workflows: workflows(t, "on_key_reuse: run"+helloManifest, "def greet(name):\n    return {'message': name}\n")})
	c, nc := client(t, s), s.Connect()
	key := strings.Repeat("k", 300)
	for _, name := range []string{"Ada", "Bob", "Cy"} {
		one := turn(key, map[string]any{"name": name})
		one.Run = "r"
		publish(t, c, one)
	}
	requireDrained(t, s)
	page := func(more string) (page api.Page) {
		m, err := nc.Request("oneturn.api.app.turn", []byte(`{"chat_id":"chat 1","run_id":"r","turn":"`+key+`"`+more+`}`), 5*time.Second)
		require.NoError(t, err)
		require.Empty(t, m.Header.Get("Nats-Service-Error"))
		require.NoError(t, json.Unmarshal(m.Data, &page))
		return page
	}
	all := page("").Records
	require.Len(t, all, 6)
	require.True(t, slices.IsSortedFunc(all, func(a, b api.Record) int { return cmp.Compare(a.Sequence, b.Sequence) }))
	require.Len(t, page(`,"from":`+strconv.FormatUint(all[2].Sequence, 10)).Records, 4)
	other := slices.IndexFunc(all, func(r api.Record) bool { return r.Fingerprint != all[0].Fingerprint })
	require.Len(t, page(`,"fingerprint":"`+all[other].Fingerprint+`"`).Records, 4, "the first one and the one with this data")
}

// TestKeyThatWasReusedTooOftenAsksForTheData: docs/wire-contract.md names the bound and the ways out.
func TestKeyThatWasReusedTooOftenAsksForTheData(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, oneturn.Config{Workflows: workflows(t, "on_key_reuse: run"+helloManifest, "def greet(name):\n    return {'message': name}\n")})
	c, nc := client(t, s), s.Connect()
	request := func(more string) *nats.Msg {
		m, err := nc.Request("oneturn.api.app.turn", []byte(`{"chat_id":"chat 1","turn":"t"`+more+`}`), 5*time.Second)
		require.NoError(t, err)
		return m
	}
	for i := range 33 {
		publish(t, c, turn("t", map[string]any{"name": strconv.Itoa(i)}))
	}
	requireDrained(t, s)
	var page api.Page
	require.NoError(t, json.Unmarshal(request("").Data, &page))
	require.NotZero(t, page.Next, "32 times other data")
	publish(t, c, turn("t", map[string]any{"name": "one more"}))
	requireDrained(t, s)
	m := request("")
	require.Equal(t, "400", m.Header.Get("Nats-Service-Error-Code"))
	require.Contains(t, m.Header.Get("Nats-Service-Error"), "name the fingerprint of the data, or read the history")
	m = request(`,"fingerprint":"` + page.Records[0].Fingerprint + `"`)
	require.Empty(t, m.Header.Get("Nats-Service-Error"))

	contract, err := os.ReadFile(filepath.Join("..", "..", "docs", "wire-contract.md"))
	require.NoError(t, err)
	require.Contains(t, string(contract), "If other data came more than 32 times, the answer is an error `400`")
}

func TestSilentWorkflowAnswersNoFailureOfValidation(t *testing.T) {
	t.Parallel()
	s := server(t)
	start(t, s, oneturn.Config{Workflows: workflows(t, "compat: {silent: true}"+helloManifest, "def greet(name):\n    return name\n")})
	c := client(t, s)
	bad := turn("t", map[string]any{})
	publish(t, c, bad)
	requireDrained(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := c.Await(ctx, bad.TurnID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// F21: see docs/faults.md.
func TestJournalThatForgetsTooSoonIsRefused(t *testing.T) {
	t.Parallel()
	s := server(t)
	config := greeter()
	config.MaxTurnLife = 30 * 24 * time.Hour
	w, err := oneturn.NewWorker(s.Connect(), config)
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "expected 745h0m0s")
}

// TestSchemasComeFromTypesAndHints binds tools of both languages as a worker does.
func TestSchemasComeFromTypesAndHints(t *testing.T) {
	t.Parallel()
	root := workflows(t, `
tools:
- {name: free, agent: A, file: hello.py}
- {name: held, agent: B, file: hello.py, function: free, input: inferred, output: inferred}
- {name: golang, agent: C, kind: go, output: inferred}
`, "from typing import Optional\ndef free(count: int, note: Optional[str] = None) -> list[str]:\n    return []\n")
	type in struct {
		Count int `json:"count"`
	}
	w, err := oneturn.NewWorker(server(t).Connect(), oneturn.Config{Workflows: root, Tools: []oneturn.Tool{
		oneturn.NewTool("golang", func(context.Context, in) (bool, error) { return true, nil }, oneturn.ToolOptions{}),
	}})
	require.NoError(t, err)
	find := func(name string) *bindings.Binding {
		b, err := w.Bindings().Tool("Hello", name)
		require.NoError(t, err)
		return b
	}
	input := `{"type":"object","properties":{"count":{"type":"integer"},"note":{"type":["string","null"]}},"required":["count"],"additionalProperties":false}`
	for _, name := range []string{"free", "held"} {
		require.JSONEq(t, input, string(find(name).InputSchema))
		require.JSONEq(t, `{"type":"array","items":{"type":"string"}}`, string(find(name).OutputSchema))
	}
	require.Nil(t, find("free").Input)
	_, problems := find("held").Input.Check(map[string]any{})
	require.Len(t, problems, 1)
	require.Contains(t, string(find("golang").InputSchema), `"count"`)
	require.Nil(t, find("golang").Input)
	require.JSONEq(t, `{"type":"boolean"}`, string(find("golang").Output.JSONSchema()))
}
