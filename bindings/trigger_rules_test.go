package bindings_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/diag"
	"github.com/oneturn/oneturn/events"
)

// observedVariables are reconstructed: only the results are recorded, not the manifest that
// gave them. This is a manifest that gives every recorded result.
const observedVariables = `
-- W/context_variables.yaml --
context_variables:
  definitions:
    eq: {type: boolean, source: {type: state, default: false, triggers: [{type: agent_text, agent: A, ui_hidden: true, match: {equals: NEXT}}]}}
    co: {type: boolean, source: {type: state, default: false, triggers: [{type: agent_text, agent: A, ui_hidden: true, match: {contains: done}}]}}
    re: {type: boolean, source: {type: state, default: false, triggers: [{type: agent_text, agent: A, match: {regex: '^id-(\d+)$'}}]}}
    flat: {type: boolean, source: {type: state, default: false, triggers: [{type: agent_text, agent: A, equals: GO}]}}
    multi: {type: string, source: {type: state, triggers: [{type: ui_response, tool: ActionPlan, response_key: data.choice}]}}
    whole: {type: object, source: {type: state, triggers: [{type: ui_response, tool: ActionPlan}]}}
-- W/agents.yaml --
agents: {A: {}, B: {}}
`

// valueTree decodes JSON, or what Python prints of simple values; another word is a text.
func valueTree(t *testing.T, text string) any {
	t.Helper()
	text = strings.NewReplacer(`'`, `"`, "None", "null", "True", "true", "False", "false").Replace(text)
	v, err := events.Decode([]byte(text))
	if err != nil {
		return text
	}
	return v
}

// Each line of the record is a text or an answer, and what MozaiksAI sets and hides. Its rule of hiding is the one of
// compat.split_hiding.
func TestObservedTriggersFireAsObserved(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/mozaiks/triggers.txt")
	require.NoError(t, err)
	set := load(t, unpack(t, observedVariables+"-- W/oneturn.yaml --\ncompat: {split_hiding: true}\n"))
	require.Empty(t, lines(set, diag.SeverityError, diag.SeverityWarning))
	rules := set.Rules("W")
	values := map[string]any{"multi": nil, "whole": nil}
	cases := 0
	for line := range strings.Lines(string(data)) {
		in, out, isCase := strings.Cut(strings.TrimSpace(line), " -> ")
		if !isCase {
			require.Equal(t, "hidden map {'A': {'done', 'NEXT'}}", in)
			continue
		}
		cases++
		if message, ok := valueTree(t, in).([]any); ok {
			agent, okAgent := message[0].(string)
			text, okText := message[1].(string)
			require.True(t, okAgent && okText)
			effects := rules.Text(agent, text)
			names := make([]string, len(effects.Steps))
			for i, s := range effects.Steps {
				names[i] = "'" + s.Variable + "'"
			}
			hidden := map[bool]string{true: "True", false: "False"}[effects.Hidden]
			require.Equal(t, out, "vars set: ["+strings.Join(names, ", ")+"] | hidden by dispatcher: "+hidden, in)
			continue
		}
		tool, response, ok := strings.Cut(in, " ")
		require.True(t, ok)
		for _, step := range rules.Answer(bindings.Answer{Names: []string{tool}, Response: valueTree(t, response)}) {
			require.Contains(t, out[:strings.IndexByte(out, ']')], "'"+step.Variable+"'", in)
			values[step.Variable] = step.Value
		}
		if strings.Contains(out, "'accepted'") {
			require.Equal(t, map[string]any{"multi": "accepted", "whole": map[string]any{"data": map[string]any{"choice": "accepted"}}}, values)
		}
	}
	require.Equal(t, 9, cases)
}

// rule returns the rules of a workflow with one trigger of agent A.
func rule(t *testing.T, trigger map[string]any) *bindings.Rules {
	t.Helper()
	trigger["type"], trigger["agent"], trigger["ui_hidden"] = "agent_text", "A", true
	data, err := json.Marshal(map[string]any{"context": map[string]any{"v": map[string]any{"triggers": []any{trigger}}}})
	require.NoError(t, err)
	return load(t, unpack(t, "-- W/oneturn.json --\n"+string(data)+"\n")).Rules("W")
}

func TestTextThatSetsIsTextThatIsHidden(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 513)
	for _, tt := range []struct {
		match, pattern, text string
		want                 bool
	}{
		{"equals", "NEXT", "\n next\t", true},
		{"equals", " Next ", "NEXT", true},
		{"equals", "NEXT", "NEXT please", false},
		{"equals", "GRÜN", "grün", true},
		{"equals", " ", " ", false},
		{"contains", "Done", "all is DONE, really", true},
		{"contains", " done", "undone", false},
		{"contains", " done", "all done", true},
		{"contains", "", "done", false},
		{"contains", "a.c", "abc", false},
		{"regex", `ID-\d+`, "see id-42 there", true},
		{"regex", `^id-\d+$`, " id-42\n", true},
		{"regex", `^id-\d+$`, "x id-42", false},
		{"regex", `(?<=x)y`, "xy", false}, // Python only
		{"regex", `(open`, "(open", false},
		{"regex", long, long, false},
		{"regex", "(a{0,40}){0,40}", "a", false}, // repeats too much
		{"regex", long[1:], long, true},
		{"regex", "(a*)*$", strings.Repeat("a", 1<<16) + "b", true}, // no backtracking
	} {
		r := rule(t, map[string]any{"match": map[string]any{tt.match: tt.pattern}})
		effects := r.Text("A", tt.text)
		require.Equal(t, tt.want, effects.Hidden, "%s %.40q %.40q", tt.match, tt.pattern, tt.text)
		require.Equal(t, tt.want, len(effects.Steps) == 1, "%s %.40q %.40q", tt.match, tt.pattern, tt.text)
		require.Empty(t, r.Text("a", tt.text), "names of agents are compared with case")
	}
}

func TestPatternsMayBeNumbersAndLists(t *testing.T) {
	t.Parallel()
	require.True(t, rule(t, map[string]any{"equals": 42}).Text("A", "42").Hidden)
	require.True(t, rule(t, map[string]any{"match": []any{"x", true}}).Text("A", "TRUE").Hidden)
	require.True(t, rule(t, map[string]any{"match": "x"}).Text("A", "X").Hidden)
}

func TestAnswerSetsOnlyWhatItHas(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, response, want string }{
		{"", `{"a":1}`, `{"a":1}`},
		{"", `{}`, `{}`},
		{"a", `{"a":false}`, `false`},
		{"data.choice", `{"data":{"choice":"x"}}`, `"x"`},
		{"data.choice", `{"data.choice":"flat","data":{"choice":"x"}}`, `"flat"`},
		{"data.choice", `{"data":{"other":1}}`, ``},
		{"data.choice", `{"data":"x"}`, ``},
		{"data.choice", `{"status":"cancelled"}`, ``},
		{"data.choice", `{"data":{"choice":null}}`, ``},
		{"a..b", `{"a":{"":{"b":2}}}`, `2`},
		{"a", `[{"a":1}]`, ``},
		{"a", `"a"`, ``},
		{"", `null`, ``},
	} {
		set := load(t, unpack(t, "-- W/oneturn.yaml --\ncontext: {v: {triggers: [{type: ui_response, tool: make_plan, response_key: \""+tt.key+"\"}]}}\n"))
		rules, response := set.Rules("W"), valueTree(t, tt.response)
		require.True(t, rules.Answers("Plan", "make_plan"))
		require.False(t, rules.Answers("Plan"))
		require.Empty(t, rules.Answer(bindings.Answer{Names: []string{"Plan", ""}, Response: response}))
		require.Empty(t, rules.Answer(bindings.Answer{Names: []string{"make_plan"}, Response: response, Secret: true}))
		steps := rules.Answer(bindings.Answer{Names: []string{"Plan", "make_plan"}, Response: response})
		if tt.want == "" {
			require.Empty(t, steps, tt.response)
			continue
		}
		require.Equal(t, []bindings.Step{{Variable: "v", Value: valueTree(t, tt.want)}}, steps, tt.response)
	}
}

func TestFirstStepThatHoldsCounts(t *testing.T) {
	t.Parallel()
	steps := []bindings.Step{
		{Variable: "v", From: json.Number("1.0"), Value: json.Number("2")},
		{Variable: "v", From: json.Number("2"), Value: json.Number("3")},
		{Variable: "w", Value: true},
		{Variable: "v", Value: "last"},
	}
	one := map[string]any{"v": json.Number("1"), "w": true}
	require.Equal(t, []bindings.Update{{"v", json.Number("2")}}, bindings.Updates(steps, one))
	require.Equal(t, map[string]any{"v": json.Number("1"), "w": true}, one)
	require.Equal(t, []bindings.Update{{"v", json.Number("3")}, {"w", true}}, bindings.Updates(steps, map[string]any{"v": json.Number("2")}))
	require.Equal(t, []bindings.Update{{"w", true}, {"v", "last"}}, bindings.Updates(steps, nil))
	require.Empty(t, bindings.Updates(nil, one))
}

func TestTriggersBeyondTheBoundsAreReportedAndIgnored(t *testing.T) {
	t.Parallel()
	var regexes []any
	for range 201 {
		regexes = append(regexes, map[string]any{"agent": "A", "regex": "x"})
	}
	data, err := json.Marshal(map[string]any{"context": map[string]any{"v": map[string]any{"triggers": regexes}}})
	require.NoError(t, err)
	set := load(t, unpack(t, "-- W/oneturn.json --\n"+string(data)+"\n"))
	require.Len(t, set.Variables("W")[0].Triggers, 200)
	require.Contains(t, strings.Join(lines(set, diag.SeverityWarning), "\n"), "the workflow has 200 regular expressions in triggers [bad_trigger]")
}

func BenchmarkText(b *testing.B) {
	set, err := bindings.Load(b.Context(), bindings.Options{Root: unpack(b, observedVariables)})
	require.NoError(b, err)
	rules, text := set.Rules("W"), strings.Repeat("What would you like to automate? ", 32)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if rules.Text("A", text).Hidden {
			b.Fatal("hidden")
		}
	}
}
