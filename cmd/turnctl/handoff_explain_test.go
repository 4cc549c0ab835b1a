package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/handoff"
)

func TestExplainPrintsTheRulesInTheOrderTriedWithTheValuesTheySaw(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviewer", "What shall I build?")
	v.publish("m2", "Interviewer", "NEXT")
	explain := func(args ...string) []string {
		return append(append([]string{"handoff", "explain", "c"}, args...), "--workflows", v.workflows)
	}
	text := ok(t, v.Server, explain("m2")...)
	require.Contains(t, text, "message m2 of chat c, app default, workflow Interviews\nInterviewer → Architect, condition, rule 0\n\n")
	require.Equal(t, ` rule of to outcome condition
 0 Interviewer Architect applies ${done} == True
 8 Architect (pre) terminate false ${drawn}
 1 Interviewer user not tried -`, lines(text, "rules in the order tried:"))
	require.Regexp(t, `\n +done +true +set by this message\n`, text)
	require.NotContains(t, text, "note:")

	v.publish("m3", "Architect", map[string]any{"title": "Shop"})
	text = ok(t, v.Server, explain("m3")...)
	require.Contains(t, text, "\nArchitect → not decided, undecided (type), rule 4\n")
	require.Regexp(t, `\n  fallback, which the other rules give: .*"Interviewer"`, text)
	require.Equal(t, ` rule of to outcome condition
 2 Architect Critic false ${drawn} > 1
 4 Architect user undecided: type ${topic} > 1
 5 Architect Interviewer not tried -`, lines(text, "rules in the order tried:"))
	require.Regexp(t, `\n +drawn +1 +set by record \d+, before the handoff\n +topic +"none" +the start value`, text)
	require.Equal(t, " rule error\n 3 unknown_agent", lines(text, "rules that cannot be used, see turnctl check:"))
	v.publish("m4", "Critic", `{"title": "Bad"}`)
	text = ok(t, v.Server, explain("m4")...)
	require.Contains(t, text, "\nCritic → terminate, after_work, rule 7; Architect was chosen first, pre rule 8\n")
	require.Equal(t, ` rule of to outcome condition
 6 Critic Interviewer decider: no the decider confirms "the plan is bad"
 7 Critic Architect applies -
 8 Architect (pre) terminate applies ${drawn}`, lines(text, "rules in the order tried:"))
	require.Contains(t, text, "\n  rule 6, agent:judge: no\n    asked: {")
	require.Contains(t, text, `"condition":"the plan is bad"`)
	e := decode[explanation](t, v.Server, explain("m3")...)
	require.True(t, e.Same)
	require.Empty(t, e.Notes)

	changed := decode[explanation](t, v.Server, explain("m1")...)
	require.False(t, changed.Same)
	require.Equal(t, "user", *changed.Handoff.To)
	require.Equal(t, "terminate", *changed.Now.To)
	require.False(t, changed.Variables[0].Seen)
	require.Contains(t, changed.Variables[0].AsOf, "of now: record ")
	require.Contains(t, changed.Notes[0], "the stored decision counts")
}

func TestExplainNamesTheAgentThatAMisspeltOneWasMeantToBe(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviwer", "NEXT")
	v.publish("m2", "Nobody", "NEXT")
	text := ok(t, v.Server, "handoff", "explain", "c", "m1", "--workflows", v.workflows)
	require.Contains(t, text, "\nnote: no rule is from \"Interviwer\": did you mean \"Interviewer\"?\n")
	e := decode[explanation](t, v.Server, "handoff", "explain", "c", "m2", "--workflows", v.workflows)
	require.Equal(t, []string{`no rule is from "Nobody": check its name, or add a rule: there are rules from Architect, Critic, Drafter, Interviewer, Speaker`}, e.Notes)
}

func TestExplainOfAnOvertakenMessageExpectsNoAnswerOfTheDecider(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	for _, m := range []*oneturn.Message{{MessageID: oneturn.MessageID{Message: "m2"}, TurnSequence: 2}, {MessageID: oneturn.MessageID{Message: "m1"}, TurnSequence: 1}} {
		m.Chat, m.Workflow, m.Agent, m.Content = "c", "Interviews", "Critic", `{"title": "Bad"}`
		_, err := v.client.DoMessage(t.Context(), m)
		require.NoError(t, err)
	}
	e := decode[explanation](t, v.Server, "handoff", "explain", "c", "m1", "--workflows", v.workflows)
	require.Equal(t, "out_of_order", e.Handoff.Code)
	require.Equal(t, []string{"no rule was tried: " + e.Handoff.Message}, e.Notes)
}

func TestExplainWithoutTheFolderExplainsWhatIsStored(t *testing.T) {
	t.Parallel()
	v := newInterview(t)
	v.publish("m1", "Interviewer", "NEXT")
	other := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(other, "Other"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(other, "Other", "oneturn.yaml"), []byte("agents: {A: }"), 0o600))
	for _, dir := range []string{filepath.Join(v.workflows, "none"), other} {
		e := decode[explanation](t, v.Server, "handoff", "explain", "c", "m1", "--workflows", dir)
		require.Equal(t, "Architect", *e.Handoff.To)
		require.Empty(t, e.Rules)
		require.Contains(t, e.Notes[0], "name the folder of the workers with --workflows")
	}
	path := filepath.Join(v.workflows, "Interviews", "oneturn.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, "  - {from: Critic, to: user}\n"...), 0o600))
	e := decode[explanation](t, v.Server, "handoff", "explain", "c", "m1", "--workflows", v.workflows)
	require.Contains(t, e.Notes[0], "are not those with which the message was read")
	require.Equal(t, handoff.OutcomeApplies, e.Rules[0].Outcome)
	code, _, stderr := turnctl(t, v.Server, "handoff", "explain", "c", "m9")
	require.Equal(t, cli.Failed, code)
	require.Contains(t, stderr, "turnctl ls --messages lists messages")
	code, _, _ = turnctl(t, v.Server, "handoff", "explain", "c", "")
	require.Equal(t, cli.Usage, code)
}
