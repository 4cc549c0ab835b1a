package bindings_test

import (
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

// hiddenHere are texts that MozaiksAI shows although they match a trigger with ui_hidden: it
// sets without regard to case, but hides by another rule.
var hiddenHere = []string{`["A", "next"]`}

// texts returns the variables that a text sets, and whether it is hidden.
func texts(set *bindings.Set, agent, text string) (names []string, hidden bool) {
	names = []string{}
	for _, v := range set.Variables("W") {
		for _, trigger := range v.Triggers {
			sets, hides := trigger.MatchText(agent, text)
			if sets {
				names = append(names, v.Name)
			}
			hidden = hidden || hides
		}
	}
	return names, hidden
}

// answers returns what the answer to a tool sets.
func answers(set *bindings.Set, tool string, response any, names ...string) map[string]any {
	values := map[string]any{}
	for _, v := range set.Variables("W") {
		for _, trigger := range v.Triggers {
			if value, ok := trigger.MatchResponse(tool, response, names...); ok {
				values[v.Name] = value
			}
		}
	}
	return values
}

// tree decodes JSON, or what Python prints of simple values; another word is a text.
func tree(t *testing.T, text string) any {
	t.Helper()
	text = strings.NewReplacer(`'`, `"`, "None", "null", "True", "true", "False", "false").Replace(text)
	v, err := events.Decode([]byte(text))
	if err != nil {
		return text
	}
	return v
}

func TestObservedTriggersFireAsObserved(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../testdata/mozaiks/triggers.txt")
	require.NoError(t, err)
	set := load(t, unpack(t, observedVariables))
	require.Empty(t, lines(set, diag.SeverityError, diag.SeverityWarning))
	cases, deviating := 0, 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		in, out, isCase := strings.Cut(line, " -> ")
		if !isCase {
			require.Equal(t, "hidden map {'A': {'done', 'NEXT'}}", line)
			continue
		}
		cases++
		if strings.HasPrefix(in, "[") {
			message, ok := tree(t, in).([]any)
			require.True(t, ok)
			agent, okAgent := message[0].(string)
			text, okText := message[1].(string)
			require.True(t, okAgent && okText)
			names, hidden := texts(set, agent, text)
			if len(hiddenHere) > deviating && hiddenHere[deviating] == in {
				require.True(t, hidden, in)
				deviating++
				hidden = false
			}
			require.Equal(t, out, "vars set: "+python(names)+" | hidden by dispatcher: "+map[bool]string{true: "True", false: "False"}[hidden], in)
			continue
		}
		tool, response, ok := strings.Cut(in, " ")
		require.True(t, ok)
		list, values, _ := strings.Cut(out, "] ")
		changed, ok := tree(t, list[:strings.IndexByte(list+"]", ']')]+"]").([]any)
		require.True(t, ok, out)
		got := answers(set, tool, tree(t, response))
		require.Len(t, got, len(changed), in)
		all, ok := tree(t, values).(map[string]any) // also of answers before
		if len(changed) > 0 {
			require.True(t, ok, values)
		}
		for _, name := range changed {
			key, ok := name.(string)
			require.True(t, ok)
			require.Equal(t, all[key], got[key], in)
		}
	}
	require.Equal(t, 9, cases)
	require.Len(t, hiddenHere, deviating)
}

// python prints a list of names as Python does.
func python(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "'" + name + "'"
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func TestWhatMatchesIsWhatIsHidden(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 513)
	tests := []struct {
		match   bindings.MatchKind
		pattern string
		text    string
		want    bool
	}{
		{bindings.MatchEquals, "NEXT", "\n next\t", true},
		{bindings.MatchEquals, " Next ", "NEXT", true},
		{bindings.MatchEquals, "NEXT", "NEXT please", false},
		{bindings.MatchEquals, "GRÜN", "grün", true},
		{bindings.MatchEquals, " ", " ", false},
		{bindings.MatchEquals, "", "", false},
		{bindings.MatchContains, "Done", "all is DONE, really", true},
		{bindings.MatchContains, " done", "undone", false},
		{bindings.MatchContains, "", "done", false},
		{bindings.MatchContains, "a.c", "abc", false},
		{bindings.MatchRegex, `ID-\d+`, "see id-42 there", true},
		{bindings.MatchRegex, `^id-\d+$`, " id-42\n", true},
		{bindings.MatchRegex, `^id-\d+$`, "x id-42", false},
		{bindings.MatchRegex, `(?<=x)y`, "xy", false}, // Python only
		{bindings.MatchRegex, `(open`, "(open", false},
		{bindings.MatchRegex, long, long, false},
		{bindings.MatchRegex, "(a{0,40}){0,40}", "a", false}, // repeats too much
		{bindings.MatchRegex, long[1:], long, true},
		{bindings.MatchRegex, "(a*)*$", strings.Repeat("a", 1<<16) + "b", true}, // no backtracking
		{"glob", "*", "*", false},
	}
	for _, tt := range tests {
		trigger := bindings.Trigger{Type: bindings.TriggerAgentText, Agent: "A", Match: tt.match, Patterns: []string{"(", tt.pattern}}
		set, hidden := trigger.MatchText("A", tt.text)
		require.Equal(t, tt.want, set, "%s %.40q %.40q", tt.match, tt.pattern, tt.text)
		require.False(t, hidden)
		trigger.UIHidden = true
		set, hidden = trigger.MatchText("A", tt.text)
		require.Equal(t, tt.want, set)
		require.Equal(t, tt.want, hidden, "%s %.40q %.40q", tt.match, tt.pattern, tt.text)

		set, hidden = trigger.MatchText("a", tt.text)
		require.False(t, set || hidden, "names of agents are compared with case")
		trigger.Agent = ""
		set, _ = trigger.MatchText("anyone", tt.text)
		require.Equal(t, tt.want, set)
		trigger.Type = bindings.TriggerUIResponse
		set, hidden = trigger.MatchText("anyone", tt.text)
		require.False(t, set || hidden)
	}
}

func TestAnswersAreFoundByAnyNameOfTheToolAndByPath(t *testing.T) {
	t.Parallel()
	tests := []struct{ key, response, want string }{
		{"", `{"a":1}`, `{"a":1}`},
		{"", `{"":1}`, `{"":1}`},
		{"", `{}`, `{}`},
		{"a", `{"a":false}`, `false`},
		{"data.choice", `{"data":{"choice":"x"}}`, `"x"`},
		{"data.choice", `{"data.choice":"flat","data":{"choice":"x"}}`, `"flat"`},
		{"data.choice", `{"data":{"other":1}}`, `{"data":{"other":1}}`},
		{"data.choice", `{"data":"x"}`, `{"data":"x"}`},
		{"data.choice", `{"data":null}`, `{"data":null}`},
		{"data.choice", `{"data":{"choice":null}}`, ``},
		{"a..b", `{"a":{"":{"b":2}}}`, `2`},
		{"a", `[{"a":1}]`, ``},
		{"a", `"a"`, ``},
		{"a", `null`, ``},
	}
	for _, tt := range tests {
		trigger := bindings.Trigger{Type: bindings.TriggerUIResponse, Tool: "make_plan", ResponseKey: tt.key}
		response := tree(t, tt.response)
		_, ok := trigger.MatchResponse("ActionPlan", response, "", "MakePlan")
		require.False(t, ok)
		value, ok := trigger.MatchResponse("ActionPlan", response, "make_plan")
		same, okSame := trigger.MatchResponse("make_plan", response)
		require.Equal(t, okSame, ok)
		require.Equal(t, same, value)
		if tt.want == "" {
			require.False(t, ok, tt.response)
			continue
		}
		require.True(t, ok, tt.response)
		require.Equal(t, tree(t, tt.want), value, tt.response)
	}
	var none map[string]any
	_, ok := bindings.Trigger{Type: bindings.TriggerUIResponse, Tool: "t"}.MatchResponse("t", none)
	require.False(t, ok, "a nil object is null")
	_, ok = bindings.Trigger{Type: bindings.TriggerUIResponse}.MatchResponse("", map[string]any{})
	require.False(t, ok, "an empty name matches no tool")
	_, ok = bindings.Trigger{Type: bindings.TriggerAgentText, Tool: "t"}.MatchResponse("t", map[string]any{})
	require.False(t, ok)
}
