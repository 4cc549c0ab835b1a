package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

// shared returns the cases of the repository.
func shared(t *testing.T) []Case {
	t.Helper()
	cases, err := load([]string{"testdata"})
	require.NoError(t, err)
	require.Len(t, cases, 143)
	return cases
}

func TestManifestOfEachCaseLoadsWithoutErrors(t *testing.T) {
	t.Parallel()
	for _, c := range shared(t) {
		folder := t.TempDir()
		require.NoError(t, c.writeWorkflow(folder, counterparts{Models: "http://127.0.0.1:1", MCP: "http://127.0.0.1:2"}), c.Name)
		set, err := bindings.Load(t.Context(), bindings.Options{Root: folder})
		require.NoError(t, err, c.Name)
		for _, d := range set.Diagnostics() {
			require.NotEqual(t, diag.SeverityError, d.Severity, "%s: %+v", c.Name, d)
		}
	}
}

func TestManifestHasTheConfigurationOfTheCase(t *testing.T) {
	t.Parallel()
	c := caseOf(t, `{
		"name": "m", "needs": ["planner", "respond", "mcp"], "ask": "do it",
		"config": {"max_steps": 5, "max_parallel": 2, "max_depth": 1, "step_timeout_ms": 1500, "run_timeout_ms": 60000, "enabled": false, "approve": true},
		"tools": {
			"a": {"input_schema": {"type": "object"}, "output_schema": {"type": "object"}, "effect": "keyed", "timeout_ms": 20,
				"max_attempts": 3, "guards": [{"on": "input", "when": "args.n > 1"}], "behaviour": {"do": "echo"}},
			"m": {"behaviour": {"do": "mcp", "result": {}}},
			"run_plan": {"behaviour": {"do": "builtin"}},
			"cp__agent_orchestrate": {"behaviour": {"do": "builtin"}}}}`)
	folder := t.TempDir()
	require.NoError(t, c.writeWorkflow(folder, counterparts{Models: "http://models", MCP: "http://mcp"}))
	got, err := os.ReadFile(filepath.Join(folder, workflowName, "oneturn.yaml"))
	require.NoError(t, err)
	const uses = `["a", "cp__agent_orchestrate", "m", "run_plan"]`
	require.JSONEq(t, `{
		"agents": {"Caller": null},
		"servers": {"case": {"url": "http://mcp", "allow_http": true, "allow_private": ["127.0.0.0/8"]}},
		"tools": [
			{"name": "a", "kind": "go", "auto": false, "input": {"type": "object"}, "output": {"type": "object"}, "effect": "keyed",
				"timeout": "20ms", "max_attempts": 3, "guards": [{"on": "input", "when": "args.n > 1"}]},
			{"name": "m", "kind": "mcp", "auto": false, "mcp": {"server": "case"}},
			{"name": "run_plan", "kind": "plan", "agent": "Caller", "uses": `+uses+`, "planner": "agent:case_planner", "respond": "agent:case_responder",
				"approve": true, "enabled": false, "program": {"calls": 5, "parallel": 2, "depth": 1, "step_timeout": "1.5s", "timeout": "1m0s"}},
			{"name": "cp__agent_orchestrate", "kind": "orchestrate", "auto": false, "uses": `+uses+`, "enabled": false,
				"program": {"steps": 5, "parallel": 2, "depth": 1, "step_timeout": "1.5s", "timeout": "1m0s"}},
			{"name": "agent:case_planner", "kind": "agent", "auto": false, "completion": {"url": "http://models/plan", "model": "scripted",
				"allow_http": true, "allow_private": ["127.0.0.0/8"]}},
			{"name": "agent:case_responder", "kind": "agent", "auto": false, "completion": {"url": "http://models/respond", "model": "scripted",
				"allow_http": true, "allow_private": ["127.0.0.0/8"]}}]}`, string(got))

	c = caseOf(t, `{"name": "m", "needs": ["planner"], "config": {"planner": {"enabled": false}, "uses": ["a"]}, "orchestrate": {},
		"tools": {"a": {"behaviour": {"do": "echo"}}, "b": {"behaviour": {"do": "echo"}}}}`)
	entry := c.programEntry(c.program(), c.Config.Uses, true)
	require.Equal(t, map[string]any{"name": "cp__agent_orchestrate", "kind": "orchestrate", "agent": "Caller", "uses": []string{"a"}}, entry)
}

func TestDataOfTheTurnIsAsTheCaseHasIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name": "m", "plan": {"n": 1.50}}`:            `{"n": 1.50}`,
		`{"name": "m", "plan_text": "{\"n\":1.50}"}`:    `{"n":1.50}`,
		`{"name": "m", "orchestrate": {"prompt": "x"}}`: `{"prompt": "x"}`,
		`{"name": "m", "ask": "Print \"it\", please."}`: `{"prompt": "Print \"it\", please."}`,
	} {
		require.JSONEq(t, want, string(caseOf(t, text).data()))
		require.True(t, json.Valid(caseOf(t, text).data()))
	}
}
