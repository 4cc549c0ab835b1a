package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/cmd/internal/cli"
)

func TestLineOfJSONThatIsTooLongIsAnErrorAndTheRestIsRead(t *testing.T) {
	t.Parallel()
	long := `{"expression": "True", "context": {"a": "` + strings.Repeat("x", maxLine) + `"}}`
	fits := `{"expression": "len(${a}) > 1", "context": {"a": "` + strings.Repeat("x", 1<<20) + `"}}`
	code, stdout, stderr := atTerminal(t, long+"\n"+fits+"\n"+long+"\n"+`{"expression": "True"}`, "handoff", "eval", "--jsonl")
	require.Equal(t, cli.OK, code, stderr)
	const refused = `{"error":"bad_line","at":"load","message":"line N has over 8388608 bytes: send a smaller context"}`
	const holds = `{"value":true}`
	require.Equal(t, []string{refused, holds, refused, holds, ""}, strings.Split(regexp.MustCompile(`line [0-9]`).ReplaceAllString(stdout, "line N"), "\n"))
}

func TestCheckPrintsWhatHandoffsMean(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"W/oneturn.yaml": `
agents: {Interviewer: , Architect: }
context: {complete: {type: boolean, default: false, triggers: [{agent: Interviewer, match: {equals: NEXT}, ui_hidden: true}]}}
tools:
- {name: "agent:judge", kind: agent, auto: false, nats: {subject: agents.judge}}
handoffs:
  decider: judge
  rules:
  - from: Interviewer
    to: Architect
    condition: ${complete} == True
  - {from: Interviewer, to: terminate, condition: the user gives up}
  - {from: [Interviewer, Architect], to: user}
`})
	code, stdout, stderr := atTerminal(t, "", "check", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, `
  handoffs, decider judge
      0: when Interviewer has spoken and ${complete} == True, Architect is next (W/oneturn.yaml:9)
      1: when Interviewer has spoken and the decider confirms "the user gives up", the chat ends
      (W/oneturn.yaml:12)
      2: when Interviewer or Architect has spoken, user is next (W/oneturn.yaml:13)
`)
	code, stdout, stderr = atTerminal(t, "", "check", dir, "-o", "json")
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, `"decider": "judge"`)
	require.Contains(t, stdout, `"text": "when Interviewer has spoken and the decider confirms \"the user gives up\", the chat ends"`)
	require.Contains(t, stdout, `"kind": "llm"`)
}

func TestCheckPrintsWhoseOutputsAreCorrected(t *testing.T) {
	t.Parallel()
	dir := workflowsOf(t, map[string]string{"W/oneturn.yaml": `
agents: {Architect: {model: Plan, completion: editor, corrections: 2}}
models: {Plan: {type: object}}
tools:
- {name: "agent:editor", auto: false, completion: {url: "https://llm.example.com/v1/chat/completions", model: small}}
`})
	code, stdout, stderr := atTerminal(t, "", "check", dir)
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, `
  corrections of outputs that cannot be used
      Architect: editor is asked, up to 2 times
`)
	code, stdout, stderr = atTerminal(t, "", "check", dir, "-o", "json")
	require.Equal(t, cli.OK, code, stderr)
	require.Contains(t, stdout, `"corrections": 2`)
}
