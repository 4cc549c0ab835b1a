package bindings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
)

const correctors = `
-- W/oneturn.yaml --
models: {Plan: {type: object}}
tools:
- {name: "agent:editor", auto: false, completion: {url: "https://a.example", model: m}}
- {name: build, agent: A, kind: go}
- {name: polish, auto: false, kind: go, effect: none}
`

func TestCorrectionsNameAnAgentOrAToolWithoutEffectAndABoundedNumber(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"{model: Plan, completion: editor, corrections: 2}":       "",
		"{model: Plan, completion: agent:editor, corrections: 2}": "",
		"{completion: editor, corrections: 2}":                    "",
		"{model: Plan, completion: polish, corrections: 2}":       "",
		"{model: Plan, corrections: 2}":                           `corrections of agent "A" name no model to ask [bad_completion]: add completion: the name of a tool of kind agent`,
		"{model: Plan, completion: build, corrections: 2}":        `completion of agent "A" names "build", of kind go and effect unsafe [bad_completion]: name a tool of kind agent, or one with effect: none`,
		"{model: Plan, completion: edtior, corrections: 2}":       `completion of agent "A" names the unknown tool "edtior" [unknown_tool]: did you mean`,
		"{model: Plan, completion: {url: x}, corrections: 2}":     `completion of agent "A" must be a name, not a map [bad_completion]`,
		"{model: Plan, completion: editor, corrections: 6}":       `invalid corrections 6 of agent "A": must be a whole number from 0 to 5 [bad_number]`,
		"{model: Plan, completion: editor, corrections: 1.5}":     "must be a whole number from 0 to 5",
		"{model: Plan, completion: editor, corrections: many}":    "must be a whole number from 0 to 5",
	} {
		set := load(t, unpack(t, correctors+"agents: {A: "+agent+"}\n"))
		found := strings.Join(lines(set, diag.SeverityError), "\n")
		a, err := set.Agent("W", "A")
		require.NoError(t, err)
		if want != "" {
			require.Contains(t, found, want)
			require.Zero(t, a.Corrections)
			require.Nil(t, set.Corrector("W", "A"))
			continue
		}
		require.Empty(t, found, agent)
		require.Equal(t, 2, a.Corrections)
		named := "agent:editor"
		if strings.Contains(agent, "polish") {
			named = "polish"
		}
		require.Equal(t, named, set.Corrector("W", "A").Tool)
		require.Len(t, set.Corrections("W"), 1)
	}
}

func TestCorrectionsThatNeverHappenAreWarnings(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"A: {model: Plan, completion: editor}":                 `completion of agent "A" is never asked: its corrections are 0 [key_unused]`,
		"A: {model: Plan, completion: editor, corrections: 0}": "is never asked",
		"B: {completion: editor, corrections: 1}":              `agent "B" has neither a model nor a tool that its output calls`,
	} {
		set := load(t, unpack(t, correctors+"agents: {"+agent+"}\n"))
		require.Contains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), want)
		require.Empty(t, set.Corrections("W"))
	}
	require.Nil(t, load(t, unpack(t, correctors)).Corrector("Other", "A"))
}

func TestCorrectionsLeaveAnAgentOfMozaiksAIAsItIs(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, correctors+`agents: {A: {completion: editor, corrections: 1}}
-- W/agents.yaml --
agents: {A: {auto_tool_mode: false}}
-- W/structured_outputs.yaml --
structured_outputs: {models: {Plan: {type: model, fields: {title: {type: str}}}}, registry: {A: Plan}}
`))
	a, err := set.Agent("W", "A")
	require.NoError(t, err)
	require.Nil(t, a.Tool)
	require.Equal(t, 1, a.Corrections)
	require.Equal(t, bindings.Corrections{Agent: "A", Tool: "editor", Most: 1}, set.Corrections("W")[0])
}
