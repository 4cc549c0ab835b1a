package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

const travel = `
agents: {Assistant: {}, Lead: {}}
tools:
- {name: run_plan, kind: plan, agent: Assistant, planner: planner}
- {name: cp__agent_orchestrate, kind: orchestrate, agent: Lead}
- {name: search, kind: go, auto: false, effect: none, input: {type: object, required: [city]}, output: {type: object, properties: {hotel: {type: string}}}}
- {name: reserve, kind: go, auto: false, effect: keyed, input: {type: object, properties: {hotel: {type: string}}}}
- {name: planner, kind: agent, auto: false, nats: {subject: agents.planner}}
`

// planFile writes a plan and returns its name.
func planFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func TestPlanCheckPrintsTheStepsOfAPlanThatWouldRun(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Travel/oneturn.yaml": travel})
	file := planFile(t, `{"type": "tool_calls", "calls": [
		{"tool_name": "search", "arguments": {"city": "Rome"}}, {"tool_name": "reserve", "arguments": {"hotel": "$0.output.hotel"}}]}`)
	code, stdout, stderr := atTerminal(t, "", "plan", "check", file, "--workflows", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.Equal(t, "Travel/run_plan runs 2 calls and stores 7 records\n  0  search   none\n  1  reserve  keyed  needs 0\n", stdout)

	code, stdout, stderr = atTerminal(t, "", "plan", "check", file, "--workflows", dir, "--workflow", "Travel", "-o", "json")
	require.Equal(t, cli.OK, code, stderr)
	require.JSONEq(t, `{"workflow": "Travel", "agent": "Assistant", "tool": "run_plan", "kind": "plan", "runs": true, "writes": 7, "errors": [], "steps": [
		{"call": "0", "step": "0", "tool_name": "search", "effect": "none", "needs": []},
		{"call": "1", "step": "1", "tool_name": "reserve", "effect": "keyed", "needs": ["0"]}]}`, stdout)
}

func TestPlanCheckWarnsOfTextsThatLookLikeReferences(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Travel/oneturn.yaml": travel})
	code, stdout, stderr := atTerminal(t, `{"type": "tool_calls", "calls": [{"tool_name": "search", "arguments": {"city": "$0.city"}}]}`,
		"plan", "check", "-", "--workflows", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, "warning: /calls/0/arguments/city: \"$0.city\" looks like a reference and is passed as text: write $<number")
}

func TestPlanCheckWarnsOfArgumentsAndKeysThatHaveNoEffect(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Travel/oneturn.yaml": travel})
	plan := `{"type": "tool_calls", "note": 1, "calls": [{"tool_name": "reserve", "arguments": {"hotl": "Ritz"}}]}`
	code, stdout, stderr := atTerminal(t, plan, "plan", "check", "-", "--workflows", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, "Travel/run_plan runs 1 call")
	require.Contains(t, stdout, "warning: /note: the key \"note\" is ignored: a plan has type, reasoning and calls\n")
	require.Contains(t, stdout, "warning: /calls/0/arguments/hotl: tool reserve does not declare argument \"hotl\"; it declares hotel. Did you mean \"hotel\"?\n")
}

func TestPlanCheckNamesApprovalAndResponder(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Travel/oneturn.yaml": travel + "- {name: careful, kind: plan, agent: Lead, planner: planner, respond: planner, approve: true}\n"})
	for data, want := range map[string]string{
		`{"type": "tool_calls", "calls": [{"tool_name": "search", "arguments": {"city": "Rome"}}]}`: "Travel/careful runs 1 call and stores 8 records\n" +
			"  0  search  none\na person approves it first\nagent planner writes the answer\n",
		`{"prompt": "a hotel"}`:                               "Travel/careful asks agent planner for the program first\na person approves it first\nagent planner writes the answer\n",
		`{"type": "tool_calls", "calls": []}`:                 "Travel/careful runs 0 calls and stores 2 records\n",
		`{"type": "direct_response", "content": "No hotel."}`: "Travel/careful runs 0 calls and stores 2 records\n",
	} {
		code, stdout, stderr := atTerminal(t, data, "plan", "check", "-", "--workflows", dir, "--tool", "careful")
		require.Equal(t, cli.OK, code, stderr)
		require.Equal(t, want, stdout)
	}
}

func TestPlanCheckFailsWithTheErrorsAndTheFeedbackOfARun(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Travel/oneturn.yaml": travel})
	typed := `{"type": "tool_calls", "calls": [{"tool_name": "search"}, {"tool_name": "reserve", "arguments": {"hotel": "$0.output.hotels"}}]}`
	code, stdout, stderr := atTerminal(t, typed, "plan", "check", "-", "--workflows", dir)
	require.Equal(t, cli.Failed, code, stderr)
	require.Contains(t, stdout, "Travel/run_plan would not run it (validation_failed)\nYour plan was not run. Correct these 2 errors:\n- /calls/0")

	code, stdout, _ = atTerminal(t, typed, "plan", "check", "-", "--workflows", dir, "-o", "json")
	require.Equal(t, cli.Failed, code)
	var report struct {
		Errors []struct {
			Path  string `json:"path"`
			Error struct {
				Type string `json:"type"`
			} `json:"error"`
		} `json:"errors"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	require.Len(t, report.Errors, 2)
	require.Equal(t, "field_not_found", report.Errors[1].Error.Type)
}

func TestPlanCheckSelectsTheToolForTheData(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Travel/oneturn.yaml": travel, "Other/oneturn.yaml": "tools: [{name: t, kind: go, agent: A}]\n"})
	for _, test := range []struct {
		data string
		args []string
		code int
		want string // of standard output or standard error
	}{
		{`{"plan": {"steps": [{"agent": {"agent_id": "search", "with": {"city": "Rome"}}}]}}`, []string{"--workflow", "Travel"}, cli.OK, "Travel/cp__agent_orchestrate runs 1 call and stores 5 records"},
		{`{"prompt": "a hotel"}`, []string{"--workflow", "Travel", "--tool", "run_plan"}, cli.OK, "Travel/run_plan asks agent planner for the program first"},
		{`{"prompt": "a hotel"}`, []string{"--workflow", "Travel", "--agent", "Lead"}, cli.Failed, "no planner is configured for tool cp__agent_orchestrate"},
		{`{"prompt": "a hotel"}`, []string{"--workflow", "Travel"}, cli.Usage, "several tools for it (run_plan of agent Assistant, cp__agent_orchestrate of agent Lead): name one with --tool, or the agent of one with --agent"},
		{`{}`, []string{"--workflow", "Other"}, cli.Usage, `workflow "Other" has no tool that runs programs: add one to its oneturn.yaml`},
		{`{}`, []string{"--workflow", "Travl"}, cli.Usage, `did you mean "Travel"?`},
		{`{}`, []string{"--workflow", "Travel", "--tool", "search"}, cli.Usage, `tool "search" is of kind go and runs no programs`},
		{`{}`, nil, cli.Usage, "has 2 workflows: name one with --workflow"},
		{`{`, []string{"--workflow", "Travel"}, cli.Usage, "standard input is not JSON"},
		{"{\"a\": 1}\n{\"a\": 2}\n", []string{"--workflow", "Travel"}, cli.Usage, "standard input has several documents, one a line: give one of them"},
		{"\ufeff" + `{"type": "tool_calls", "calls": []}`, []string{"--workflow", "Travel"}, cli.OK, "Travel/run_plan runs 0 calls"},
		{`{"kind": "plan_ready", "plan": {"type": "tool_calls", "calls": [{"tool_name": "search", "arguments": {"city": "Rome"}}]}, "turn_idempotency_key": "t", "context": {"chat_id": "c", "workflow_name": "Travel"}}`, nil, cli.OK, "Travel/run_plan runs 1 call"},
	} {
		code, stdout, stderr := atTerminal(t, test.data, append([]string{"plan", "check", "-", "--workflows", dir}, test.args...)...)
		require.Equal(t, test.code, code, stdout+stderr)
		require.Contains(t, stdout+stderr, test.want)
	}
	code, _, stderr := atTerminal(t, "", "plan", "check", filepath.Join(dir, "none.json"), "--workflows", dir)
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "none.json")
}

func TestCheckListsHowAToolRunsPrograms(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Travel/oneturn.yaml": travel + "- {name: off, kind: plan, agent: Other, uses: [], respond: planner, enabled: false, approve: true, program: {calls: 1}}\n"})
	code, stdout, stderr := atTerminal(t, "", "check", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, "search (none)")
	require.Contains(t, stdout, "prompts go to planner; 50 calls at most; timeout 5m, of a step 1m\n")
	require.Contains(t, stdout, "disabled; steps call no tool; answers are by planner; a person approves them; 1 call at most")
	code, stdout, _ = atTerminal(t, "", "check", dir, "-o", "json")
	require.Equal(t, cli.OK, code)
	require.Contains(t, stdout, `"step_timeout_ms": 60000`)

	code, _, stderr = atTerminal(t, "", "call", "run_plan", "--workflows", dir)
	require.Equal(t, cli.Usage, code)
	require.Contains(t, stderr, "tool run_plan runs programs")
}
