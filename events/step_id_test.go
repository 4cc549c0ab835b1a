package events_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/events"
)

func stepIDs(id string) [][2]string {
	found := [][2]string{}
	for callID, call := range events.StepIDs(id) {
		found = append(found, [2]string{callID, call})
	}
	return found
}

func TestIDOfAStepLeadsToItsTurnAndCall(t *testing.T) {
	t.Parallel()
	for id, want := range map[string][][2]string{
		"t#0":                  {{"t", "0"}},
		"t@01234567#fan[1]":    {{"t@01234567", "fan[1]"}},
		"t#outer#in.n-e_r:1":   {{"t", "outer#in.n-e_r:1"}, {"t#outer", "in.n-e_r:1"}},
		"t#~plan":              {{"t", events.StepPlan}},
		"a #b c#0":             {{"a #b c", "0"}},
		"é#a#b":                {{"é", "a#b"}, {"é#a", "b"}},
		"t":                    {},
		"":                     {},
		"#0":                   {},
		"t#":                   {},
		"t#é":                  {},
		"t#a/1":                {},
		"t##a":                 {{"t#", "a"}},
		"##a#":                 {},
		"t#\xff":               {},
		"t#" + long(0):         {{"t", long(0)}},
		"t#" + long(1):         {},
		"t#a#" + long(0):       {{"t#a", long(0)}},
		"t@01234567#a#~plan":   {{"t@01234567", "a#~plan"}, {"t@01234567#a", "~plan"}},
		"t#0#1#2":              {{"t", "0#1#2"}, {"t#0", "1#2"}, {"t#0#1", "2"}},
		"a/b#c/d#0":            {{"a/b#c/d", "0"}},
		"t\u202e#0":            {{"t\u202e", "0"}},
		strings.Repeat("#", 9): {},
	} {
		require.Equal(t, want, stepIDs(id), "%.40q", id)
	}
	for callID, call := range events.StepIDs("t#0#1#2") {
		require.Equal(t, []string{"t", "0#1#2"}, []string{callID, call})
		break // a loop may end early
	}
}

// long is the id of a step with so many bytes more than the longest.
func long(more int) string { return strings.Repeat("x", events.MaxStepBytes+more) }

func TestEachIDOfAStepIsAmongThoseItIsParsedTo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		turn := rapid.OneOf(rapid.StringN(1, 20, 100), rapid.StringMatching(`[a#@/~]{1,8}`)).Draw(t, "turn")
		call := rapid.StringMatching(`[a-z0-9_.:~\[\]-]{1,8}(#[a-z0-9_.:~\[\]-]{1,8}){0,2}`).Draw(t, "call")
		id := events.StepID(turn, call)
		found := stepIDs(id)
		require.Contains(t, found, [2]string{turn, call})
		for _, pair := range found {
			require.Equal(t, id, events.StepID(pair[0], pair[1]))
		}
		gotCall, ask, ok := events.ParseQuestionID(events.QuestionID("t#"+call, "1"))
		require.True(t, ok)
		require.Equal(t, []string{"t#" + call, "1"}, []string{gotCall, ask})
	})
}

func TestRunOfATurnIsFoundInTheIDsOfItsSteps(t *testing.T) {
	t.Parallel()
	call := events.CallID(events.TurnID{Turn: "a#b", Run: "r"}, "token")
	require.Equal(t, "a#b", events.TurnOfCallID(events.QuestionID(events.StepID(call, "0#1"), "1"), "r"))
}

func TestInternalStepIsOneAtAnyDepth(t *testing.T) {
	t.Parallel()
	for _, id := range []string{events.StepPlan, events.StepRespond, events.StepApprove, "1#~plan", "fan[0]#2#~respond"} {
		require.True(t, events.IsInternalStep(id), id)
	}
	for _, id := range []string{"0", "merge", "fan[0]", "1#0"} {
		require.False(t, events.IsInternalStep(id), id)
	}
}
