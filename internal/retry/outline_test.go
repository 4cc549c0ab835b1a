package retry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/retry"
)

func TestCallRunsAgainWithoutConsentOnlyIfItsEffectIsKnownOrHarmless(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		effect events.Effect
		code   events.Code
		want   bool
	}{
		{events.EffectUnsafe, events.CodeToolError, false},
		{events.EffectUnsafe, events.CodeUserError, false},
		{events.EffectUnsafe, events.CodeBadArgs, false},
		{events.EffectUnsafe, events.CodeInterrupted, true},
		{events.EffectUnsafe, events.CodeCancelled, true},
		{events.EffectUnsafe, events.CodeTimeout, true},
		{events.EffectUnsafe, events.CodeTooLarge, true},
		{events.EffectUnsafe, "-", true},
		{"", events.CodeInterrupted, true},
		{"unheard_of", events.CodeInterrupted, true},
		{events.EffectReplay, events.CodeCancelled, true},
		{events.EffectKeyed, events.CodeTimeout, true},
		{events.EffectKeyed, events.CodeToolError, false},
		{events.EffectIdempotent, events.CodeInterrupted, false},
		{events.EffectNone, "-", false},
	} {
		past := newJournal(t, "turn").claim(nil).program("", plan("0", "1"), nil).call("0", c.effect, c.code).ends("", events.CodeCancelled).read()
		require.NoError(t, past.Check("turn"))
		o := past.Outline(nil)
		require.Equal(t, []string{"0", "1"}, has(o, false))
		require.Equal(t, c.want, o.Calls[0].Uncertain, "%v", c)
		require.Equal(t, c.want, o.Consent(nil) != nil, "%v", c)
		require.Equal(t, !c.want, o.Covers(nil))
		require.NoError(t, o.Consent([]string{"0"}))
		require.True(t, o.Covers([]string{"0"}))
		if c.want {
			require.ErrorIs(t, o.Consent(nil), events.ErrBadArgs)
			require.ErrorContains(t, o.Consent(nil), "call 0 of tool tool")
			require.Equal(t, []string{"0"}, o.Uncertain())
		}
		strict := past.Outline(func(string) events.Effect { return events.EffectUnsafe })
		require.Equal(t, c.want || c.code == events.CodeInterrupted || c.code == "-", strict.Calls[0].Uncertain, "the effect of today counts if it is stricter: %v", c)
	}
}

func TestCallWhoseToolHasReturnedRunsAgainOnlyWithConsent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		effect events.Effect
		state  events.EffectState
		want   string // the reason, "" if no consent is needed
	}{
		{events.EffectUnsafe, events.EffectHappened, "has happened, though its result was not used"},
		{events.EffectKeyed, events.EffectHappened, "has happened"},
		{events.EffectReplay, events.EffectInDoubt, "may or may not have happened"},
		{events.EffectUnsafe, "unheard_of", "may or may not have happened"},
		{events.EffectUnsafe, "", ""},
		{events.EffectIdempotent, events.EffectHappened, ""},
		{events.EffectNone, events.EffectInDoubt, ""},
	} {
		j := newJournal(t, "turn").claim(nil).program("", plan("0", "1"), nil)
		j.add(events.KindToolCall, j.called(nil, "0", "tool", c.effect))
		j.add(events.KindToolResponse, &events.ToolResponse{
			Step: "0", ToolCallID: "turn#0", Status: events.StatusError, Code: events.CodeGuardrail, EffectState: c.state, Attempts: 1,
		})
		o := j.ends("", events.CodeGuardrail).read().Outline(nil)
		require.Equal(t, c.state, o.Calls[0].EffectState)
		if c.want == "" {
			require.NoError(t, o.Consent(nil), "%v", c)
			continue
		}
		require.ErrorContains(t, o.Consent(nil), "call 0 of tool tool (guardrail, "+string(c.effect)+") "+c.want, "%v", c)
		require.NoError(t, o.Consent([]string{"0"}))
	}
}

func TestConsentToACallThatDoesNotRunIsRefused(t *testing.T) {
	t.Parallel()
	o := newJournal(t, "turn").claim(nil).program("", plan("0", "1"), nil).call("0", events.EffectUnsafe, "").call("1", events.EffectUnsafe, events.CodeToolError).
		ends("", events.CodeToolError).read().Outline(nil)
	require.ErrorContains(t, o.Consent([]string{"0"}), "call 0 has ended")
	require.ErrorContains(t, o.Consent([]string{"7"}), `no call "7"`)
	require.NoError(t, o.Consent([]string{"1"}))
}

func TestNestedProgramContinuesWhereItHasEnded(t *testing.T) {
	t.Parallel()
	past := newJournal(t, "turn").claim(nil).program("", plan("0", "1", "2"), nil).call("0", events.EffectNone, "").
		call("1", events.EffectProgram, "-").program("1", plan("0", "1", "2"), nil).call("1#0", events.EffectUnsafe, "").call("1#1", events.EffectUnsafe, events.CodeInterrupted).
		ends("1", events.CodeInterrupted).ends("", events.CodeInterrupted).read()
	o := past.Outline(nil)
	require.Equal(t, []string{"0", "1#0"}, has(o, true))
	require.Equal(t, []string{"1", "1#1", "1#2", "2"}, has(o, false))
	require.Equal(t, []string{"1#1"}, o.Uncertain(), "the program inside decides by its calls")
	copies, err := past.Copies(o)
	require.NoError(t, err)
	nested, err := copies.Program("1#")
	require.NoError(t, err)
	require.True(t, nested.SameSteps(plan("0", "1", "2")))
	none, err := copies.Program("0#")
	require.NoError(t, err)
	require.Nil(t, none)
}

func TestCopiesStandForTheTurnThatTheyComeFrom(t *testing.T) {
	t.Parallel()
	first := newJournal(t, "turn").claim(nil).program("", plan("0", "1", "2", "3"), nil).call("0", events.EffectUnsafe, "").
		call("1", events.EffectUnsafe, events.CodeToolError).ends("", events.CodeToolError).read()
	copies, err := first.Copies(first.Outline(nil))
	require.NoError(t, err)
	copies.Calls[0].Output = map[string]any{"n": number("1.0")}
	second := newJournal(t, "turn~retry1").claim(func(e *events.ToolCall) { e.ResumeOf = "turn" }).program("", plan("0", "1", "2", "3"), copies).
		call("1", events.EffectUnsafe, "").call("2", events.EffectUnsafe, events.CodeToolError).ends("", events.CodeToolError).read()
	o := second.Outline(nil)
	require.Equal(t, []string{"0", "1"}, has(o, true))
	require.Equal(t, "turn#0", o.Calls[0].From)
	again, err := second.Copies(o)
	require.NoError(t, err)
	require.Equal(t, copies.Calls[0], again.Calls[0])
	require.Equal(t, "turn~retry1#1", again.Call("1").From)
	require.Equal(t, map[string]any{"from": "1"}, again.Call("1").Output)
	require.Equal(t, map[string]any{"of": "1"}, again.Call("1").Arguments)

	payload := events.PlanPayload{Steps: []events.PlanStep{{Call: "0"}, {Call: "2"}}}
	again.Mark(&payload, "")
	require.Equal(t, &events.CopiedCall{From: "turn#0", Success: true}, payload.Steps[0].Copied)
	require.Nil(t, payload.Steps[1].Copied)

	// A retry that ended before it ran anything has all that it has copied.
	third := newJournal(t, "turn~retry2").claim(nil).program("", plan("0", "1", "2", "3"), again).ends("", events.CodeCancelled).read()
	require.Equal(t, []string{"0", "1"}, has(third.Outline(nil), true))
}

func TestRaceKeepsItsWinner(t *testing.T) {
	t.Parallel()
	p := plan("last")
	p.Kind = flow.KindOrchestration
	p.Steps = append([]flow.Step{{ID: "r", Group: true, Merge: flow.MergeFirstSuccess, Parallel: 2, Calls: []flow.Call{{ID: "r0", Tool: "tool"}, {ID: "r1", Tool: "tool"}}}}, p.Steps...)
	j := newJournal(t, "turn").claim(nil).program("", p, nil)
	j.add(events.KindToolCall, j.called(nil, "r0", "tool", events.EffectUnsafe)).call("r1", events.EffectUnsafe, "").ends("r0", "").call("last", events.EffectUnsafe, events.CodeToolError)
	past := j.ends("", events.CodeToolError).read()
	copies, err := past.Copies(past.Outline(nil))
	require.NoError(t, err)
	require.Less(t, copies.Call("r1").Seq, copies.Call("r0").Seq)
	require.Equal(t, []string{"last"}, has(past.Outline(nil), false))
}

func TestTurnWithDamagedRecordsIsNotRetried(t *testing.T) {
	t.Parallel()
	j := newJournal(t, "turn").claim(nil)
	for _, r := range []retry.Record{
		{Kind: events.KindToolCall, Event: []byte("{")}, {Kind: events.KindToolResponse, Event: []byte("{}")}, {Kind: events.RecordProgram, Event: []byte("[]")},
	} {
		_, err := retry.Read(append(j.records[:1:1], r), inline)
		require.ErrorIs(t, err, events.ErrStateCorrupt)
	}
	_, err := retry.Read(newJournal(t, "turn").program("", plan("0"), nil).records, inline)
	require.ErrorIs(t, err, events.ErrStateCorrupt)
	_, err = retry.Decode(5)
	require.Error(t, err)
	_, err = retry.Decode("{")
	require.Error(t, err)
}
