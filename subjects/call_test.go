package subjects_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/subjects"
)

func TestTokenOfAStepLeadsBackToItsIDUnlessItIsLong(t *testing.T) {
	t.Parallel()
	require.Equal(t, "s_0", subjects.StepCall("0"))
	require.Equal(t, "s_outer=23fan=5B1=5D", subjects.StepCall("outer#fan[1]"))
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.StringMatching(`[a-zA-Z0-9_.:~#\[\]-]{1,100}`), rapid.StringN(1, 20, 100)).Draw(t, "id")
		token := subjects.StepCall(id)
		require.Equal(t, token, subjects.CallOf(id))
		for _, other := range []string{subjects.SingleCall, subjects.Absent, subjects.PlanCall, subjects.RespondCall, subjects.ApproveCall} {
			require.NotEqual(t, other, token)
		}
		back, ok := subjects.StepOfCall(token)
		require.Equal(t, !strings.HasPrefix(token, "=="), ok)
		if ok {
			require.Equal(t, id, back)
		} else {
			require.Greater(t, len(id), 20)
		}
	})
}

func TestOtherTokensDoNotLeadToSteps(t *testing.T) {
	t.Parallel()
	for _, token := range []string{
		"0", "plan", "respond", "approve", subjects.Token(strings.Repeat("x", 99)),
		"-", "", "1", "s_", "s_=61", "s", "=73_a", "s_*", "s_a.b", "S_a", "==x",
	} {
		_, ok := subjects.StepOfCall(token)
		require.False(t, ok, token)
	}
}

func TestCallTokenFollowsFromTheStepInAnID(t *testing.T) {
	t.Parallel()
	for step, token := range map[string]string{
		"": subjects.SingleCall, events.StepPlan: "plan", events.StepRespond: "respond", events.StepApprove: "approve",
		"plan": "s_plan", "0": "s_0", "a#~plan": "s_a=23=7Eplan",
	} {
		require.Equal(t, token, subjects.CallOf(step), step)
		require.Equal(t, step, subjects.StepOf(token))
	}
	hash := subjects.StepCall(strings.Repeat("x", 200))
	require.Equal(t, hash, subjects.StepOf(hash))
}

func TestKeysOfTheCallsOfATurnShareItsRecords(t *testing.T) {
	t.Parallel()
	turn := subjects.TurnKey("app", "chat", "r", "t")
	step := turn.WithCall(subjects.StepCall("a.b"))
	require.Equal(t, "e.app.chat.1-rt.s_a=2Eb.tool_call", step.Public(events.RecordCall))
	require.Equal(t, turn, step.OfTurn())
	require.Equal(t, "*.app.chat.1-rt.>", step.TurnRecords())
	for _, name := range []string{step.Public(events.RecordCall), turn.Private(events.RecordPark, "1"), turn.Public(events.RecordProgram), turn.ReuseNote("00ff")} {
		require.True(t, matches(step.TurnRecords(), name), name)
		record, ok := subjects.ParseKey(name)
		require.True(t, ok)
		require.Equal(t, turn, record.OfTurn())
	}
	other := subjects.TurnKey("app", "chat", "", "t2")
	require.False(t, matches(step.TurnRecords(), other.Public(events.RecordCall)))
	key, ok := subjects.ParseCall(step.String())
	require.True(t, ok)
	require.Equal(t, step, key)
}
