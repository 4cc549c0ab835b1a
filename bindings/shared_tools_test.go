package bindings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools/target"
)

const sharedFile = `
-- tools.oneturn.yaml --
servers:
  files: {command: [run]}
tools:
- {name: read_file, mcp: {server: files}, effect: none, cache: 1m, description: Reads., limits: {rate: 10/s}, guards: [{on: input, max_bytes: 1KiB}]}
- {name: place, nats: {subject: orders.place}, timeout: 5s, schema: {type: object, properties: {item: {type: string}}}}
- {id: critic, completion: {url: "https://llm.example.com", model: m}}
- {name: broken, http: {url: "ftp://x"}}
`

func TestAWorkflowUsesSharedToolsAndItsOwnKeysWin(t *testing.T) {
	t.Parallel()
	root := unpack(t, sharedFile+`
-- W/oneturn.yaml --
agents: {A: , B: , C: , D: , E: }
tools:
- {use: read_file, agent: A}
- {use: place, name: order, agent: B, timeout: 1s, effect: keyed, guards: [{on: output, secrets: refuse}]}
- {name: grep, agent: C, mcp: {server: files}}
- {use: broken, agent: D}
- {use: read_file, name: slowly, agent: E, limits: {rate: 1/m}}
-- M/tools.yaml --
tools:
- {use: read_file, agent: A, auto_invoke: true, cache: 2m, guards: [{on: output, secrets: refuse}]}
`)
	set := load(t, root)
	require.Equal(t, []string{
		`tools.oneturn.yaml:7: error: tool broken cannot be used: url has no scheme https [bad_url]: write https://…`,
	}, lines(set, diag.SeverityError))

	read, err := set.Resolve("W", "A", "")
	require.NoError(t, err)
	require.Equal(t, "read_file", read.Tool)
	require.Equal(t, "read_file", read.Shared)
	require.Equal(t, "Reads.", read.Description)
	require.Equal(t, bindings.Cache{TTL: time.Minute, Scope: bindings.ScopeChat}, read.Cache)
	require.Equal(t, target.Rate{Calls: 10, Per: time.Second}, read.Limits.Tool.Rate)
	require.Len(t, read.Guards, 1)
	require.Equal(t, "effect of the tool (tools.oneturn.yaml:4)", read.EffectWhy)
	require.Equal(t, &target.MCP{Tool: "read_file", Server: &target.MCPServer{Name: "files", Command: []string{"run"}, Dir: root}}, read.Target)

	order, err := set.Resolve("W", "B", "order")
	require.NoError(t, err)
	require.Equal(t, "order", order.Tool)
	require.Equal(t, "place", order.Shared)
	require.Equal(t, time.Second, order.Timeout)
	require.Equal(t, bindings.EffectKeyed, order.Effect)
	require.Equal(t, []string{"item"}, order.Model.Fields())
	require.Len(t, order.Guards, 1)

	grep, err := set.Resolve("W", "C", "")
	require.NoError(t, err)
	require.Empty(t, grep.Shared)
	require.Same(t, read.Target.(*target.MCP).Server, grep.Target.(*target.MCP).Server) //nolint:forcetypeassert // a panic fails the test

	slowly, err := set.Resolve("W", "E", "")
	require.NoError(t, err)
	require.Empty(t, slowly.Shared, "it is counted on its own")
	require.Equal(t, time.Minute, slowly.Limits.Tool.Rate.Per)

	_, err = set.Resolve("W", "D", "")
	require.ErrorContains(t, err, "tool broken of agent D is not usable: tools.oneturn.yaml:7: url has no scheme https")

	read, err = set.Resolve("M", "A", "")
	require.NoError(t, err)
	require.Equal(t, 2*time.Minute, read.Cache.TTL)
	require.Len(t, read.Guards, 2, "the guards of both are asked")
}

func TestToolsAreFoundByNameWithoutAnAgent(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, sharedFile+`
-- W/oneturn.yaml --
agents: {A: {model: M}}
models: {M: {type: object, properties: {x: {}}}}
tools:
- {name: run, agent: A, kind: go}
- {name: by_hand, agent: A, kind: go, auto: false}
- {use: place, agent: A, effect: none}
- {use: "agent:critic", id: judge, agent: A, auto: false}
- {name: unusable, agent: A, http: {url: "https://"}}
-- V/oneturn.yaml --
agents: {A: }
tools: [{name: run, agent: A, kind: go}, {name: only_here, agent: A, kind: go}]
`))
	var names []string
	for _, b := range set.Shared() {
		require.Empty(t, b.Workflow+b.Agent)
		names = append(names, b.Tool)
	}
	require.Equal(t, []string{"read_file", "place", "agent:critic"}, names)
	names = nil
	for _, b := range set.Tools("W") {
		names = append(names, b.Tool)
	}
	require.Equal(t, []string{"run", "by_hand", "place", "agent:critic"}, names)

	for _, c := range []struct{ workflow, name, of, model string }{
		{"W", "run", "W", "M"},
		{"W", "by_hand", "W", "M"},
		{"W", "place", "W", "place"},
		{"w", "read_file", "", ""},
		{"", "place", "", "place"},
		{"", "only_here", "V", ""},
		{"V", "agent:critic", "", ""},
		{"W", "agent:judge", "W", "M"},
	} {
		b, err := set.Tool(c.workflow, c.name)
		require.NoError(t, err)
		require.Equal(t, c.of, b.Workflow, c)
		require.Empty(t, b.Agent)
		if b.Workflow != "" {
			require.Equal(t, c.model, b.ModelName)
		}
	}
	for asked, want := range map[[2]string]string{
		{"W", "runn"}:      `did you mean "run"?`,
		{"W", "unusable"}:  "url has no host",
		{"", "broken"}:     "url has no scheme https",
		{"", "run"}:        "name one of them: V/run, W/run",
		{"", "only_her"}:   `did you mean "only_here"?`,
		{"W", "only_here"}: "has no tool",
	} {
		_, err := set.Tool(asked[0], asked[1])
		require.ErrorContains(t, err, want)
		var e *events.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, events.CodeUnknownTool, e.Code)
	}
	_, err := set.Tool("Wx", "run")
	require.ErrorIs(t, err, bindings.ErrUnknownWorkflow)
}

func TestMistakesInTheSharedFileAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tool: []":                      `:1: error: shared manifest has no key "tool" [unknown_key]: did you mean "tools"?`,
		"tools: {a: b}":                 `tools must be a list [wrong_shape]`,
		"tools: [a]":                    `a tool must be a map [wrong_shape]`,
		"tools: [{nats: {subject: a}}]": `a shared tool has no name [tool_without_name]: add name`,
		"tools: [{name: a, file: t.py, kind: python}]":      `tool a is a Python function, which belongs to the folder of a workflow [shared_python]`,
		"tools: [{name: a, agent: A, kind: go}]":            `shared tool has no key "agent" [unknown_key]`,
		"tools: [{name: a, kind: go}, {name: a, kind: go}]": `tool a is defined at tools.oneturn.yaml:1 already; this one is ignored [tool_defined_twice]`,
		"tools: [": `the file cannot be read`,
		"[]":       `the file must be a map [wrong_shape]`,
	} {
		set := load(t, unpack(t, "-- tools.oneturn.yaml --\n"+text+"\n-- W/oneturn.yaml --\nagents: {A: }\ntools: [{use: tool, agent: A}]\n"))
		found := strings.Join(lines(set, diag.SeverityError), "\n")
		require.Contains(t, found, want)
		require.Contains(t, found, `W/oneturn.yaml:2: error: it uses the unknown shared tool "tool" [unknown_tool]`)
	}
}

func TestDigestOfAWorkflowChangesWithTheSharedFileIfItUsesIt(t *testing.T) {
	t.Parallel()
	root := unpack(t, sharedFile+`
-- Uses/oneturn.yaml --
tools: [{use: place, agent: A}]
-- Server/oneturn.yaml --
tools: [{name: x, agent: A, mcp: {server: files}}]
-- Alone/oneturn.yaml --
tools: [{name: x, agent: A, kind: go}]
`)
	first := load(t, root)
	name := filepath.Join(root, "tools.oneturn.yaml")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	write(t, name, strings.Replace(string(text), "5s", "6s", 1))
	second := load(t, root)
	require.NotEqual(t, first.Digest(), second.Digest())
	require.NotEqual(t, first.WorkflowDigest("Uses"), second.WorkflowDigest("Uses"))
	require.NotEqual(t, first.WorkflowDigest("Server"), second.WorkflowDigest("Server"))
	require.Equal(t, first.WorkflowDigest("Alone"), second.WorkflowDigest("Alone"))
}

func TestWatchReloadsWhatUsesTheSharedFile(t *testing.T) {
	t.Parallel()
	root := unpack(t, sharedFile+`
-- W/oneturn.yaml --
tools: [{use: place, agent: A}]
-- Alone/oneturn.yaml --
tools: [{name: x, agent: A, kind: go}]
`)
	name := filepath.Join(root, "tools.oneturn.yaml")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	good := strings.Replace(string(text), "ftp://x", "https://x", 1)
	write(t, name, good)
	changes := watch(t, root)
	place := func(s *bindings.Set) *bindings.Binding {
		b, err := s.Resolve("W", "A", "")
		require.NoError(t, err)
		return b
	}
	first := (<-changes).set
	require.Equal(t, 5*time.Second, place(first).Timeout)

	write(t, name, strings.Replace(good, "5s", "6s", 1))
	second := until(t, changes, func(c change) bool { return place(c.set).Timeout == 6*time.Second })
	alone, err := second.Resolve("Alone", "A", "")
	require.NoError(t, err)
	before, err := first.Resolve("Alone", "A", "")
	require.NoError(t, err)
	require.Same(t, before, alone, "what does not use it is not read again")

	// An invalid edit is not taken, neither by the shared tools nor by the workflows that use them.
	write(t, name, strings.Replace(strings.Replace(good, "5s", "7s", 1), "orders.place", "orders.*", 1))
	third := until(t, changes, func(c change) bool {
		return strings.Contains(strings.Join(lines(c.set, diag.SeverityError), ""), "kept_previous")
	})
	require.Same(t, place(second), place(third))
	require.Len(t, third.Shared(), 4)

	write(t, name, strings.Replace(good, "5s", "8s", 1))
	fourth := until(t, changes, func(c change) bool { return place(c.set).Timeout == 8*time.Second })
	require.Empty(t, lines(fourth, diag.SeverityError))
}
