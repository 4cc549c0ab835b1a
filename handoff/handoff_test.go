package handoff_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/handoff"
)

func compile(t *testing.T, decider, manifest string) (*handoff.Rules, []string) {
	t.Helper()
	rules, found := handoff.Compile(handoff.Options{
		Agents: []string{"A", "B", "C"}, Variables: []string{"x", "y"}, Decider: decider,
		Locate: func(n int, pointer string) (string, int) { return fmt.Sprintf("W%d%s", n, pointer), n + 1 },
	}, handoff.Manifest{JSON: []byte(manifest)})
	lines := make([]string, len(found))
	for i, f := range found {
		lines[i] = f.Field + " " + f.Code
		require.NotEmpty(t, f.Fix, f.Message)
	}
	return rules, lines
}

func decide(t *testing.T, rules *handoff.Rules, agent, content string, variables map[string]any, answers map[int]handoff.Answer) string {
	t.Helper()
	in := handoff.Input{Agent: agent, Content: content, Last: "C", Variables: variables, Answers: map[string]handoff.Answer{}}
	d, q := rules.Decide(in)
	for q != nil && answers[q.Rule] != "" {
		in.Answers[q.Call()] = answers[q.Rule]
		d, q = rules.Decide(in)
	}
	var value any = d
	if q != nil {
		value = q
	}
	text, err := json.Marshal(value)
	require.NoError(t, err)
	var again handoff.Decision
	if q == nil {
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, d, again)
	}
	return string(text)
}

func TestRulesOfAllShapesAreRead(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string][]string{
		`null`:                                  nil,
		`{}`:                                    nil,
		`{"handoffs": {"decider": "x"}}`:        {},
		`[{"from": "A", "to": "B"}]`:            {"0 when A has spoken, B is next"},
		`{"rules": [{"from": "A", "to": "B"}]}`: {"0 when A has spoken, B is next"},
		`{"handoffs": {"handoff_rules": [{"source_agent": "A", "target_agent": "B"}]}}`: {"0 when A has spoken, B is next"},
		`{"B": "user", "A": ["B", {"to": "end", "condition": "${x}"}], "C": {"to": "A"}}`: {
			"0 when B has spoken, user is next", "1 when A has spoken, B is next", "2 when A has spoken and ${x}, the chat ends", "3 when C has spoken, A is next",
		},
		`[{"from": ["A", "B"], "to": ["C"], "condition": "${x}"}, {"from": "A", "to": "A"}]`: {
			"0 when A or B has spoken and ${x}, C is next", "1 when A has spoken, A is next",
		},
		`[{"source_agent": "A", "handoff_type": "condition", "targets": [{"target_agent": "B", "condition": "${x}"}, {"target_agent": "C", "condition": "${y}", "scope": "PRE"}]}]`: {
			"0 when A has spoken and ${x}, B is next", "1 when A is next and ${y}, C is next instead",
		},
		`[{"from": "A", "to": "B", "trigger": ["NEXT", " Done "], "conditions": ["context_variables.x is null", "${y}"]}]`: {
			`0 when A has spoken and the text is "NEXT" or "Done" and ${x} == None and ${y}, B is next`,
		},
	} {
		rules, found := compile(t, "judge", manifest)
		require.Empty(t, found, manifest)
		var got []string
		for _, r := range rules.List() {
			got = append(got, fmt.Sprint(r.Number, " ", r))
		}
		require.ElementsMatch(t, want, got, manifest)
		require.Equal(t, len(want) == 0, rules.Empty())
	}
}

func TestRuleWithAnErrorIsLeftOutAlone(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`7`:                            "/0 bad_rule",
		`{"to": "B"}`:                  "/0 bad_rule",
		`{"from": 7, "to": "B"}`:       "/0 bad_rule",
		`{"from": "Ghost", "to": "B"}`: "/0/from unknown_agent",
		`{"from": "end", "to": "B"}`:   "/0/from unknown_agent",
		`{"from": "A", "to": "D"}`:     "/0/to unknown_agent",
		`{"from": "A"}`:                "/0 no_target",
		`{"from": "A", "to": 5}`:       "/0/to no_target",
		`{"from": "A", "to": []}`:      "/0 no_target",
		`{"from": "A", "to": "B", "handoff_type": 5}`:                                  "/0/handoff_type unknown_handoff_type",
		`{"from": "A", "to": "B", "condition": true}`:                                  "/0/condition bad_condition",
		`{"from": "A", "to": "B", "condition": "${x} = 1"}`:                            "/0/condition bad_condition",
		`{"from": "A", "to": "B", "condition": "x == 1", "condition_type": "context"}`: "/0/condition bad_condition",
		`{"from": "A", "to": "B", "trigger": {"equals": "x"}}`:                         "/0/trigger bad_condition",
		`{"from": "A", "to": "B", "handoff_type": "Condition"}`:                        "/0/condition no_condition",
	} {
		rules, found := compile(t, "judge", `[`+entry+`, {"from": "A", "to": "C"}]`)
		require.Equal(t, []string{want}, found, entry)
		require.Len(t, rules.List(), 1)
		require.Equal(t, 1, rules.List()[0].Number)
		got := decide(t, rules, "A", "", nil, nil)
		require.Contains(t, got, `{"to":"C","rule":1,"reason":"after_work"`)
		require.Equal(t, !strings.Contains(want, "bad_rule") && !strings.Contains(want, "/from"), strings.Contains(got, "ignored"), got)
	}
	rules, found := compile(t, "", `{"a": `)
	require.Equal(t, []string{" bad_rule"}, found)
	require.True(t, rules.Empty())
}

func TestRulesThatNeverApplyAreReported(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string][]string{
		`[{"from": "A", "to": "B"}, {"from": "A", "to": "C"}]`:                                             {"/0 overridden"},
		`[{"from": "A", "to": "B", "condition": "${x}"}, {"from": "A", "to": "C", "condition": " ${x} "}]`: {"/1 never_applies"},
		`[{"from": "A", "to": "B", "condition": "1 == 2", "condition_type": "expression"}]`:                {"/0 never_applies"},
		`[{"from": "A", "to": "B", "condition": "1 < 'x'", "condition_type": "expression"}]`:               {"/0 bad_condition"},
		`[{"from": "A", "to": "B", "condition": "True", "condition_type": "expression"}, {"from": "A", "to": "C", "condition": "${x}"}, {"from": "A", "to": "A"}]`: {
			"/1 never_applies", "/2 never_applies",
		},
		`[{"from": "A", "to": "A", "condition": "${x}", "scope": "pre"}]`:                     {"/0 cycle"},
		`[{"from": "user", "to": "A", "condition": "${x}", "scope": "pre"}]`:                  {"/0 never_applies"},
		`[{"from": "A", "to": "B", "condition": "${z}"}]`:                                     {"/0/condition unknown_variable"},
		`[{"from": "A", "to": "B", "condition": "is ${x} enough?", "condition_type": "llm"}]`: {"/0/condition expression_for_model"},
		`[{"from": "A", "to": "B", "condition": "x == True"}]`:                                {"/0/condition question_like_expression"},
		`[{"from": "A", "to": "B", "condition": "not x"}]`:                                    {"/0/condition question_like_expression"},
		`[{"from": "A", "to": "B", "condition": "gone > 1"}]`:                                 {"/0/condition question_like_expression"},
		`[{"from": "A", "to": "B", "condition": "x == True", "condition_type": "llm"}]`:       {},
		`[{"from": "A", "to": "B", "condition": "x is what the user has chosen"}]`:            {},
		`[{"from": "A", "to": "B", "condition": "agreed"}]`:                                   {},
		`[{"from": "A", "to": "B", "scope": "pre"}]`:                                          {"/0/scope scope_ignored"},
		`[{"from": "A", "to": "B", "condition": "ready", "condition_type": "vote"}]`:          {"/0/condition_type unknown_condition_type"},
	} {
		_, found := compile(t, "judge", manifest)
		require.Equal(t, want, found, manifest)
	}
}

func TestUnknownKeyOfAStrictRuleIsAnError(t *testing.T) {
	t.Parallel()
	text := []byte(`[{"from": "A", "to": "B", "conditon": "${x}"}, {"from": "A", "to": "C", "note": 1}, {"from": "A", "to": "user"}]`)
	opts := handoff.Options{Agents: []string{"A", "B", "C"}}
	rules, found := handoff.Compile(opts, handoff.Manifest{JSON: text, Strict: true})
	require.Len(t, found, 2)
	require.Equal(t, "did you mean condition?", found[0].Fix)
	require.Equal(t, "/1/note", found[1].Field)
	d, _ := rules.Decide(handoff.Input{Agent: "A"})
	require.Equal(t, handoff.Decision{To: "user", Rule: 2, Reason: handoff.ReasonAfterWork, Ignored: []handoff.Ignored{{Rule: 0, Code: "unknown_key"}, {Rule: 1, Code: "unknown_key"}}}, d)

	rules, found = handoff.Compile(opts, handoff.Manifest{JSON: text}, handoff.Manifest{JSON: text})
	require.Len(t, rules.List(), 6)
	require.Equal(t, "misspelt_key", found[0].Code)
	for _, key := range handoff.Keys() {
		_, found = handoff.Compile(opts, handoff.Manifest{JSON: []byte(`{"B": {"` + key + `": "C"}}`), Strict: true})
		require.NotContains(t, fmt.Sprint(found), "unknown_key")
	}
}

func TestTriggerIsTheWholeText(t *testing.T) {
	t.Parallel()
	rules, _ := compile(t, "", `[{"from": "A", "to": "B", "trigger": "Weiter, Größe", "condition": "${x} > 1"}]`)
	big := map[string]any{"x": json.Number("2")}
	require.Contains(t, decide(t, rules, "A", "\n WEITER, GRÖSSE ", big, nil), "no_rule")
	require.Contains(t, decide(t, rules, "A", "\n weiter, grÖße ", big, nil), `{"to":"B","rule":0,"reason":"condition"}`)
	require.Contains(t, decide(t, rules, "A", "weiter, größe", map[string]any{"x": json.Number("1")}, nil), "no_rule")
	require.Contains(t, decide(t, rules, "A", "other", nil, nil), "no_rule") // the condition is not tried
}

func TestDeciderIsAskedInOrderAndOnlyWhereItsAnswerCounts(t *testing.T) {
	t.Parallel()
	rules, _ := compile(t, "judge", `[
	  {"from": "A", "to": "B", "condition": "${x}"},
	  {"from": "A", "to": "C", "condition": "bored", "trigger": "bye"},
	  {"from": "A", "to": "user", "condition": "unsure"},
	  {"from": "A", "to": "A"},
	  {"from": "B", "to": "C", "condition": "busy", "scope": "pre"}]`)
	x := map[string]any{"x": true}
	const yes, no, failed = handoff.AnswerYes, handoff.AnswerNo, handoff.AnswerFailed
	answers := map[int]handoff.Answer{}
	require.JSONEq(t, `{"rule":2,"condition":"unsure","from":"A","to":"user"}`, decide(t, rules, "A", "hi", x, answers))
	require.JSONEq(t, `{"rule":1,"condition":"bored","from":"A","to":"C"}`, decide(t, rules, "A", "bye", x, answers))
	answers[2] = no
	require.JSONEq(t, `{"rule":4,"condition":"busy","from":"B","to":"C"}`, decide(t, rules, "A", "hi", x, answers))
	answers[4] = yes
	require.JSONEq(t, `{"to":"C","rule":0,"reason":"condition","via":[{"agent":"B","rule":4}]}`, decide(t, rules, "A", "hi", x, answers))
	answers[4] = failed
	require.JSONEq(t, `{"to":null,"rule":4,"reason":"undecided","code":"decider_failed","message":"handoff rule 4 of B (W0/4:1): the decider \"judge\" failed: see its tool response","fallback":{"to":"B","rule":0,"reason":"condition"}}`,
		decide(t, rules, "A", "hi", x, answers))
	answers[2] = failed
	require.Contains(t, decide(t, rules, "A", "hi", nil, answers), `"code":"decider_failed"`)
	require.Contains(t, decide(t, rules, "A", "hi", nil, answers), `"fallback":{"to":"A","rule":3,"reason":"after_work"}`)
	require.JSONEq(t, `{"to":"user","rule":2,"reason":"llm"}`, decide(t, rules, "A", "hi", nil, map[int]handoff.Answer{2: yes}))
}

func TestUndecidedRuleIsNamedWithTheFix(t *testing.T) {
	t.Parallel()
	rules, _ := compile(t, "", `[{"from": "A", "to": "B"}, {"from": "B", "to": "C", "condition": "${y} > 5", "scope": "pre"}]`)
	require.JSONEq(t, `{"to":null,"rule":1,"reason":"undecided","code":"type",`+
		`"message":"handoff rule 1 of B (W0/1:1): condition \"${y} \u003e 5\": character 6: \u003e between a text and a number or boolean, which have no order: compare values of the same type; use == or != for others",`+
		`"fallback":{"to":"B","rule":0,"reason":"after_work"}}`, decide(t, rules, "A", "", map[string]any{"y": "hunter2"}, nil))
}

func TestUserIsAnsweredByTheLastSpeaker(t *testing.T) {
	t.Parallel()
	rules, _ := compile(t, "", `[{"from": "user", "to": "B", "condition": "${x}"}, {"from": "C", "to": "A", "condition": "${y}", "scope": "pre"}]`)
	values := map[string]any{"x": false, "y": false}
	require.JSONEq(t, `{"to":"C","rule":null,"reason":"last_speaker"}`, decide(t, rules, "UserProxy", "hi", values, nil))
	values["y"] = true
	require.JSONEq(t, `{"to":"A","rule":null,"reason":"last_speaker","via":[{"agent":"C","rule":1}]}`, decide(t, rules, "user", "hi", values, nil))
	require.Contains(t, decide(t, rules, "user", "hi", map[string]any{"y": false}, nil), `"fallback":{"to":"C","rule":null,"reason":"last_speaker"}`)
	require.JSONEq(t, `{"to":null,"rule":null,"reason":"no_rule"}`, decide(t, nil, "A", "hi", nil, nil))
	d, _ := rules.Decide(handoff.Input{Agent: "user", Variables: values})
	require.Equal(t, handoff.ReasonNoRule, d.Reason)
}

func TestRulesBeyondTheBoundAreIgnored(t *testing.T) {
	t.Parallel()
	targets := strings.TrimSuffix(strings.Repeat(`{"to": "B", "condition": "${x} == 1"},`, 2*handoff.MaxRules), ",")
	rules, found := handoff.Compile(handoff.Options{Agents: []string{"A", "B"}}, handoff.Manifest{JSON: []byte(`[{"from": "A", "targets": [` + targets + `]}]`)})
	require.Len(t, rules.List(), handoff.MaxRules)
	require.LessOrEqual(t, len(found), 1100)
	require.True(t, slices.ContainsFunc(found, func(f diag.Finding) bool { return f.Code == "too_many_rules" && f.Severity == diag.SeverityError }))
}
