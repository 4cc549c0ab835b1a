package bindings_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/handoff"
)

// rulesOf are the rules of workflow W, each with its place.
func rulesOf(set *bindings.Set) []string {
	var all []string
	for _, r := range set.Handoffs("W").List() {
		all = append(all, strings.TrimPrefix(r.File, "W/")+": "+r.String())
	}
	return all
}

func TestHandoffsOfAllFilesAndFormsAreRead(t *testing.T) {
	t.Parallel()
	const agents = "-- W/agents.yaml --\nagents: {A: {}, B: {}}\n"
	for files, want := range map[string][]string{
		"-- W/handoffs.yaml --\nhandoff_rules: [{source_agent: A, target_agent: B, handoff_type: after_work}]\n":                    {"handoffs.yaml: when A has spoken, B is next"},
		"-- W/handoffs.json --\n\ufeff" + `{"handoffs": {"handoff_rules": [{"source_agent": "A", "target_agent": "user"}]}}` + "\n": {"handoffs.json: when A has spoken, user is next"},
		"-- W/handoffs.yml --\nhandoffs: [{from: A, to: B, trigger: NEXT}]\n":                                                       {`handoffs.yml: when A has spoken and the text is "NEXT", B is next`},
		"-- W/oneturn.yaml --\nhandoffs: [{from: A, to: stop}]\n":                                                                   {"oneturn.yaml: when A has spoken, the chat ends"},
		"-- W/oneturn.yaml --\nhandoffs: {rules: [{from: B, to: A}]}\n-- W/handoffs.yaml --\n- {from: A, to: B}\n":                  {"handoffs.yaml: when A has spoken, B is next", "oneturn.yaml: when B has spoken, A is next"},
		"-- W/handoffs.yaml --\n":           nil,
		"-- W/oneturn.yaml --\nhandoffs:\n": nil,
	} {
		set := load(t, unpack(t, agents+files))
		require.Empty(t, lines(set, diag.SeverityError), files)
		require.Empty(t, lines(set, diag.SeverityWarning), files)
		require.Equal(t, want, rulesOf(set), files)
	}
}

func TestFindingsOfHandoffsNameTheLine(t *testing.T) {
	t.Parallel()
	set := load(t, unpack(t, `
-- W/oneturn.yaml --
agents: {A: , B: }
context:
  done: {type: boolean, default: false, triggers: [{agent: A, match: {equals: DONE}}]}
  unset: {default: 1}
handoffs:
  decider: Judge
  rules:
    - {from: A, to: Ghost}
    - from: A
      to: B
      condition: ${donne} == True
    - {from: A, to: B, condition: "${done} === True"}
    - {from: A, to: B, conditon: x}
    - {from: B, to: A, condition: the user agrees}
    - {from: B, to: A, condition: "${unset} > 1"}
`))
	const file = "W/oneturn.yaml:"
	require.Equal(t, []string{
		file + `6: error: decider names the unknown tool "Judge" [unknown_tool]: define it under tools`,
		file + `8: error: target "Ghost" of a handoff rule is not an agent of the workflow [unknown_agent]: name an agent of the workflow, user or terminate`,
		file + `12: error: condition "${done} === True" is invalid: character 9: "===" after a value [bad_condition]: write ==, != or >=`,
		file + `13: error: a handoff rule has no key "conditon" [unknown_key]: did you mean condition?`,
	}, lines(set, diag.SeverityError))
	require.Equal(t, []string{
		file + `4: warning: context variable unset is in a condition of a handoff, and no trigger and no tool sets it [never_set]: add a trigger, or a tool that sets it`,
		file + `11: warning: condition "${donne} == True" uses context variable donne, which is not declared; where nothing sets it, its handoffs are undecided [unknown_variable]: did you mean ${done}?`,
	}, lines(set, diag.SeverityWarning))
	d, _ := set.Handoffs("w").Decide(handoff.Input{Agent: "A", Variables: map[string]any{"donne": true}})
	require.Equal(t, handoff.Decision{
		To: "B", Rule: 1, Reason: handoff.ReasonCondition, Ignored: []handoff.Ignored{{Rule: 0, Code: "unknown_agent"}, {Rule: 2, Code: "bad_condition"}, {Rule: 3, Code: "unknown_key"}},
	}, d)
	require.True(t, set.Handoffs("Other").Empty())
	require.Nil(t, set.Decider("Other"))
	require.Nil(t, set.Decider("W"))
}

func TestDeciderIsAnAgentOrAToolWithoutEffect(t *testing.T) {
	t.Parallel()
	const tools = `
-- W/agents.yaml --
agents: {A: {}, B: {}}
-- W/tools.yaml --
tools:
  - {name: "agent:judge", auto_invoke: false, agent: A, completion: {url: "https://a.example", model: m}}
  - {name: run, agent: B, kind: go, auto_invoke: false}
  - {name: vote, agent: B, kind: go, auto_invoke: false, effect: none}
`
	const rules = "\nhandoff_rules: [{source_agent: A, target_agent: B, handoff_type: condition, condition: the user agrees}]\n"
	for manifest, want := range map[string]string{
		"-- W/handoffs.yaml --\ndecider: judge" + rules:                                        "",
		"-- W/handoffs.yaml --\ndecider: agent:judge" + rules:                                  "",
		"-- W/handoffs.yaml --\ndecider: vote" + rules:                                         "",
		"-- W/handoffs.yaml --" + rules + "-- W/oneturn.yaml --\nhandoffs: {decider: judge}\n": "",
		"-- W/handoffs.yaml --\ndecider: run" + rules:                                          `decider names "run", of kind go and effect unsafe`,
		"-- W/handoffs.yaml --\ndecider: jugde" + rules:                                        `decider names the unknown tool "jugde" [unknown_tool]: did you mean`,
		"-- W/handoffs.yaml --\ndecider: [judge]" + rules:                                      "decider must be a name, not a list",
	} {
		set := load(t, unpack(t, tools+manifest))
		found := strings.Join(lines(set, diag.SeverityError), "\n")
		if want != "" {
			require.Contains(t, found, want)
			require.NotContains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "no_decider", "one finding is enough")
			require.Nil(t, set.Decider("W"))
			continue
		}
		require.Empty(t, found, manifest)
		named := "agent:judge"
		if strings.Contains(manifest, "vote") {
			named = "vote"
		}
		require.Equal(t, named, set.Decider("W").Tool)
		_, q := set.Handoffs("W").Decide(handoff.Input{Agent: "A"})
		require.Equal(t, &handoff.Question{Rule: 0, Condition: "the user agrees", From: "A", To: "B"}, q)
	}
}
