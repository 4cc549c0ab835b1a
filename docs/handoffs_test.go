package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/handoff"
	"github.com/oneturn/oneturn/handoff/expression"
)

// result returns true, false or the code of the error, as a cell of a table.
func result(t *testing.T, condition, variables string) string {
	t.Helper()
	e, err := expression.Parse(condition)
	holds := false
	if err == nil {
		holds, err = e.Eval(object(t, variables))
	}
	var known *expression.Error
	if err != nil {
		require.ErrorAs(t, err, &known)
		return string(known.Code)
	}
	if holds {
		return "true"
	}
	return "false"
}

func TestConditionsOfThePageAboutHandoffsHaveTheirResults(t *testing.T) {
	t.Parallel()
	for _, row := range rowsOf(t, "handoffs.md", "| condition | variables | result |") {
		require.Equal(t, code(row[2]), result(t, code(row[0]), code(row[1])), row)
	}
}

// disputed returns the cases whose results differ from the observed ones.
func disputed(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile("../testdata/agent-messages/" + file)
	require.NoError(t, err)
	var all []map[string]any
	for line := range bytes.Lines(data) {
		if c := object(t, string(line)); c["disputed"] == true {
			all = append(all, c)
		}
	}
	return all
}

func TestPageListsEachConditionWhoseResultDiffersFromAG2(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t, "mozaiksai.md", "| condition | variables | AG2 | oneturn |")
	all := disputed(t, "handoff_expressions.jsonl")
	require.Len(t, rows, len(all))
	for i, c := range all {
		row, observed := rows[i], object(t, encoded(t, c["ag2"]))
		text, ok := c["expression"].(string)
		if !ok {
			require.Equal(t, "too_large", code(row[3]))
			require.Equal(t, "too_large", result(t, strings.Repeat("True and ", 1000)+"True", "{}"))
			continue
		}
		require.Equal(t, text, agentText(t, row[0]))
		require.JSONEq(t, encoded(t, c["context"]), code(row[1]))
		want := map[any]string{"load": "error when read", "evaluate": "error when tried", nil: encoded(t, observed["value"])}[observed["at"]]
		require.Equal(t, want, code(row[2]))
		require.Equal(t, code(row[3]), result(t, text, code(row[1])))
	}
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

func TestPageListsEachHandoffThatDiffersFromMozaiksAI(t *testing.T) {
	t.Parallel()
	covers := map[string]string{ // row → names of cases
		"no rule applies":                                        `^order: no |only an unknown target`,
		"`pre` rules that choose each other":                     `pre rules that go round`,
		"`pre` rules of the user":                                `pre of the user`,
		"a rule with `after_work` and a condition":               `after_work with a condition`,
		"a condition for a model":                                `^llm conditions: `,
		"unknown variable, types without order":                  `: (unknown variable|wrong types)$`,
		"a list as source":                                       `^$`,
		"a rule that is not a map":                               `rule that is not a map`,
		"rules with `from`, `to` and `trigger`":                  `^shapes: `,
		"a rule without `target_agent`":                          `^$`,
		"an `orchestration_pattern` other than `DefaultPattern`": `^$`,
	}
	rows := rowsOf(t, "mozaiksai.md", "| handoffs | MozaiksAI | oneturn |")
	require.Len(t, rows, len(covers))
	var patterns []string
	for _, row := range rows {
		require.Contains(t, covers, row[0])
		patterns = append(patterns, covers[row[0]])
	}
	for _, c := range disputed(t, "handoff_rules.jsonl") {
		name, _ := c["name"].(string)
		require.True(t, slices.ContainsFunc(patterns, func(p string) bool { return regexp.MustCompile(p).MatchString(name) }), name)
	}
}

func TestCommandsOfThePageAboutHandoffsPrintWhatItShows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "workflows", "Interviews"), 0o750))
	manifest := fenced(t, "handoffs.md", "yaml")[0].text
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workflows", "Interviews", "oneturn.yaml"), []byte(manifest), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "context.json"), []byte(fenced(t, "handoffs.md", "json")[0].text), 0o600))
	shown := 0
	for _, block := range fenced(t, "handoffs.md", "console") {
		for _, part := range strings.Split("\n"+strings.TrimSuffix(block.text, "\n"), "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			run := exec.CommandContext(t.Context(), "sh", "-c", command)
			run.Dir, run.Env = dir, append(os.Environ(), "PATH="+bin(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
			out, _ := run.CombinedOutput()
			got := regexp.MustCompile(`digest [0-9a-f]{16}`).ReplaceAllString(string(out), "digest 0000000000000000")
			for piece := range strings.SplitSeq(want, "\n  …\n") {
				require.Contains(t, got, piece, command)
			}
			shown++
		}
	}
	require.Equal(t, 4, shown)
}

func next(rules *handoff.Rules, in handoff.Input, ask func(q *handoff.Question) handoff.Answer) handoff.Decision {
	decision, question := rules.Decide(in)
	for ; question != nil; decision, question = rules.Decide(in) {
		in.Answers[question.Call()] = ask(question) // stored first, so that no model is asked twice
	}
	return decision
}

func TestGoOfThePageAboutHandoffsDecides(t *testing.T) {
	t.Parallel()
	root := folderOf(t, "handoffs.md")
	set := load(t, root)
	in := handoff.Input{
		Agent: "Interviewer", Content: "NEXT", Variables: map[string]any{"complete": true, "approved": true}, Answers: map[string]handoff.Answer{},
	}
	decision := next(set.Handoffs("Interviews"), in, func(*handoff.Question) handoff.Answer { return handoff.AnswerNo })
	require.Equal(t, handoff.Decision{To: "user", Rule: 0, Reason: handoff.ReasonCondition, Via: []handoff.Via{{Agent: "Architect", Rule: 3}}}, decision)
}
