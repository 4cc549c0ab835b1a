package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/test/repaircases"
)

func TestExtractReadsLinesAsTheCasesExpect(t *testing.T) {
	t.Parallel()
	cases := repaircases.Read(t, "../../testdata/agent-messages/json_repair.jsonl")
	var in strings.Builder
	for _, c := range cases {
		in.WriteString(`{"text":` + string(c.Content))
		if c.Schema != nil {
			in.WriteString(`,"schema":` + string(c.Schema))
		}
		in.WriteString(`,"finish_reason":"` + c.FinishReason + `"}` + "\n")
	}
	code, stdout, stderr := atTerminal(t, in.String(), "extract", "--jsonl")
	require.Equal(t, cli.Failed, code, stderr)
	require.Empty(t, stderr)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	require.Len(t, lines, len(cases))
	for i, c := range cases {
		var got extracted
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &got))
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Check(t, &repaircases.Outcome{
				Value: got.Value, Code: string(got.Error), Feedback: got.Feedback,
				Repairs: repaircases.Texts(got.Repairs), Around: repaircases.Texts(got.Around), Warnings: repaircases.Texts(got.Warnings),
			})
			require.Equal(t, got.Error == "", strings.Contains(lines[i], `"repairs":[`))
		})
	}
}

// requireLine checks that the output is one line, byte for byte.
func requireLine(t *testing.T, want, output string) {
	t.Helper()
	line, rest, ended := strings.Cut(output, "\n")
	require.True(t, ended)
	require.Empty(t, rest)
	require.Equal(t, want, line)
}

func TestExtractPrintsTheObjectOnOneLineAndReportsRepairs(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := atTerminal(t, "Here:\n```json\n{\n  b: 1.50,\n  \"a\": \"\\frac\",\n}\n```", "extract")
	require.Equal(t, cli.OK, code)
	requireLine(t, `{"b":1.50,"a":"\frac"}`, stdout)
	require.Equal(t, "repaired: trailing_comma, unquoted_key\naround the object: prose, fence\n"+
		"warning: suspect_escape: \\f and \\b are a form feed and a backspace in JSON: for a backslash write \\\\\n", stderr)

	code, stdout, stderr = atTerminal(t, `{"a":1}`, "extract", "-o", "json")
	require.Equal(t, cli.OK, code)
	require.JSONEq(t, `{"value":{"a":1},"repairs":[],"around":[]}`, stdout)
	require.Empty(t, stderr)
}

func TestExtractFailsWithFeedbackForTheModel(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := atTerminal(t, `{"a":1`, "extract")
	require.Equal(t, cli.Failed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "feedback for the model:\nYour reply could not be used (truncated at line 1, column 7)")
	require.Contains(t, stderr, "turnctl: extract object: truncated at line 1, column 7: the text ends inside an object: send all of it\n")

	code, stdout, _ = atTerminal(t, `{"a":1}`, "extract", "--finish-reason", "length", "-o", "json")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stdout, `"error": "truncated"`)

	code, _, stderr = atTerminal(t, strings.Repeat(" ", 1<<20)+`{"a":1}`, "extract")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "too_large")
}

func TestExtractChecksTheModelOfTheAgent(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"Shop/oneturn.yaml": `
agents: {Planner: {model: Plan}, Editor: {model: Plan}, Writer: {}}
models:
  Plan: {type: object, required: [title, steps], properties: {title: {type: string}, steps: {type: array}}}
tools: [{name: run, agent: Planner, kind: go}]
`})
	code, stdout, stderr := atTerminal(t, `{"draft":1} {"title":"Tea","steps":[]}`, "extract", "--workflows", dir, "--agent", "Planner")
	require.Equal(t, cli.OK, code, stderr)
	requireLine(t, `{"title":"Tea","steps":[]}`, stdout)

	code, stdout, stderr = atTerminal(t, `{"title":"Tea"}`, "extract", "--workflows", dir, "--workflow", "Shop", "--agent", "Planner")
	require.Equal(t, cli.Failed, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "feedback for the model:\nYour output does not fit the model \"Plan\". Correct this error:\n- /steps: is missing")
	require.Contains(t, stderr, "turnctl: extract object: it does not fit the model Plan\n")

	code, stdout, _ = atTerminal(t, `{"text":"{title: 'Tea'}"}`, "extract", "--workflows", dir, "--agent", "Planner", "--jsonl")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stdout, `"value":{"title":"Tea"}`)
	require.Contains(t, stdout, `"violations":[{"path":"/steps"`)

	code, _, stderr = atTerminal(t, `{"title":"Tea"}`, "extract", "--workflows", dir, "--agent", "Editor") // has no tool
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "- /steps: is missing")

	for want, args := range map[string][]string{
		`add --agent`:        {"--workflow", "Shop"},
		`has no model`:       {"--agent", "Writer"},
		`agent Wrter`:        {"--agent", "Wrter"},
		`workflow "Shp"`:     {"--workflow", "Shp", "--agent", "Planner"},
		`mutually exclusive`: {"--jsonl", "--finish-reason", "stop"},
		`takes no arguments`: {"answer.txt"},
	} {
		code, _, stderr = atTerminal(t, `{}`, append([]string{"extract", "--workflows", dir}, args...)...)
		require.Equal(t, cli.Usage, code, stderr)
		require.Contains(t, stderr, want)
	}
}

func TestExtractReadsOnAfterALineThatItCannotRead(t *testing.T) {
	t.Parallel()
	in := strings.Join([]string{
		`{"text":"{\"a\":1}"}`, ``, `no JSON`, `{"text":"` + strings.Repeat("x", maxLine) + `"}`, `{"schema":{}}`, `{"text":"{}","schema":7}`,
		`{"text":"{}","text":"{}"}`, `{"text":5,"schema":null}`, `{"text":"{}","note":1}`,
	}, "\n")
	code, stdout, stderr := atTerminal(t, in, "extract", "--jsonl")
	require.Equal(t, cli.Failed, code)
	require.Empty(t, stderr)
	var codes []string
	for line := range strings.Lines(stdout) {
		var got extracted
		require.NoError(t, json.Unmarshal([]byte(line), &got), line)
		codes = append(codes, string(got.Error))
		require.Equal(t, got.Error != "", got.Message != "")
	}
	require.Equal(t, []string{"", "bad_line", "too_large", "bad_line", "bad_line", "bad_line", "not_an_object", ""}, codes)

	code, stdout, _ = atTerminal(t, `{"text":"{\"a\":1}"}`+"\n", "extract", "--jsonl")
	require.Equal(t, cli.OK, code)
	requireLine(t, `{"value":{"a":1},"repairs":[],"around":[]}`, stdout)
}
