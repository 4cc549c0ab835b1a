package program_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/program"
)

func TestDataOfAPlanIsThePlanOrHasItOrAsksForIt(t *testing.T) {
	t.Parallel()
	c := compiler(t, "run_plan", nil)
	for _, data := range []string{plan("search {\"city\":\"Rome\"}"), `{"plan":` + plan("search {\"city\":\"Rome\"}") + `}`} {
		p, ask, err := c.Compile(decoded(t, data))
		require.NoError(t, err)
		require.Nil(t, ask)
		require.Len(t, p.Steps, 1)
		require.Equal(t, 50, p.Limits.Calls)
	}
	for data, want := range map[string]string{
		`{"prompt":"find a hotel"}`:                               "no planner is configured for tool run_plan: send a plan, or set planner in the manifest",
		`{"prompt":"find a hotel","plan":{"type":"tool_calls"}}`:  "set either plan or prompt, not both",
		`{"prompt":" "}`:                                          `type has to be "tool_calls" or "direct_response"`,
		`{"type":"tool_calls","calls":[{"tool_name":"planner"}]}`: `"planner" is not a tool that this plan may call`,
		`[]`: "the plan has to be an object",
	} {
		_, _, err := c.Compile(decoded(t, data))
		require.ErrorContains(t, err, want, data)
		require.Equal(t, events.CodeValidationFailed, events.CodeOf(err), data)
	}
}

func TestPromptOfAnOrchestrationGoesToItsPlanner(t *testing.T) {
	t.Parallel()
	c := compiler(t, "cp__agent_orchestrate", nil)
	p, ask, err := c.Compile(decoded(t, `{"prompt":"judge it","bindings":{"text":"x"},"max_parallel":2}`))
	require.NoError(t, err)
	require.Nil(t, p)
	require.Equal(t, &flow.Request{Prompt: "judge it", Bindings: map[string]any{"text": "x"}, Parallel: 2}, ask)
	p, ask, err = c.Compile(decoded(t, `{"plan":{"steps":[{"agent":{"agent_id":"critic"}}]}}`))
	require.NoError(t, err)
	require.Nil(t, ask)
	require.Equal(t, "review", p.Steps[0].Calls[0].Tool)
	require.True(t, c.Options(true).Planned)
}

func TestDisabledToolRefusesProgramsAsGuardrail(t *testing.T) {
	t.Parallel()
	_, _, err := compiler(t, "off", nil).Compile(decoded(t, plan()))
	require.Equal(t, events.CodeGuardrail, events.CodeOf(err))
	require.ErrorContains(t, err, "tool off is disabled: its manifest has enabled: false")
}

// TestProgramThatIsTooDeepByItselfIsInvalidAndByItsCallersIsAGuardrail has nested plans: inner allows two levels.
func TestProgramThatIsTooDeepByItselfIsInvalidAndByItsCallersIsAGuardrail(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string {
		text := plan("deep")
		for range levels - 1 {
			text = plan(`inner {"plan":` + text + `}`)
		}
		return text
	}
	set := load(t, manifest)
	b := set.Bound("W", "", "inner")
	for _, test := range []struct {
		levels, depth int
		code          events.Code
	}{{1, 1, ""}, {2, 1, ""}, {3, 1, events.CodeValidationFailed}, {1, 2, ""}, {2, 2, events.CodeGuardrail}, {3, 2, events.CodeValidationFailed}, {1, 3, events.CodeGuardrail}} {
		_, _, err := program.NewCompiler(set, b, "", test.depth, nil).Compile(decoded(t, nested(test.levels)))
		if test.code == "" {
			require.NoError(t, err, test)
			continue
		}
		require.Equal(t, test.code, events.CodeOf(err), test)
		require.ErrorContains(t, err, "the limit is 2")
	}
}

func TestNestedProgramIsCheckedWithTheToolsOfItsTool(t *testing.T) {
	t.Parallel()
	c := compiler(t, "run_plan", nil)
	_, _, err := c.Compile(decoded(t, plan(`inner {"plan":`+plan("deep")+`}`)))
	require.NoError(t, err)
	_, _, err = c.Compile(decoded(t, plan(`inner {"plan":`+plan(`search {"city":"Rome"}`)+`}`)))
	require.ErrorContains(t, err, `"search" is not a tool that this plan may call`)
}

func TestCheckReportsStepsAndWritesOrTheErrorsOfARun(t *testing.T) {
	t.Parallel()
	c := compiler(t, "run_plan", nil)
	got := program.Check(c, decoded(t, plan(`search {"city":"Rome"}`, `save {"hotel":"$0.output.hotels.0"}`)))
	require.Empty(t, got.Errors)
	require.Empty(t, got.Code)
	require.Equal(t, []program.Step{
		{Call: "0", Step: "0", Tool: "search", Effect: events.EffectNone, Needs: []string{}},
		{Call: "1", Step: "1", Tool: "save", Effect: events.EffectKeyed, Needs: []string{"0"}},
	}, got.Steps)
	require.Equal(t, 7, got.Writes)

	got = program.Check(c, decoded(t, plan(`search {"city":1}`, `save {"hotel":"$0.output.hotel"}`)))
	require.Equal(t, events.CodeValidationFailed, got.Code)
	require.Len(t, got.Errors, 2)
	require.True(t, strings.HasPrefix(got.Feedback, "Your plan was not run."), got.Feedback)
	require.False(t, got.Runs)
	require.Empty(t, got.Steps)

	got = program.Check(c, decoded(t, `{"plan":`+plan(`search {"city":"$0.city"}`)+`}`))
	require.True(t, got.Runs)
	require.Len(t, got.Warnings, 1)
	require.Contains(t, got.Warnings[0].Message, `"$0.city" looks like a reference and is passed as text`)

	got = program.Check(compiler(t, "off", nil), decoded(t, plan()))
	require.Equal(t, events.CodeGuardrail, got.Code)
	require.Contains(t, got.Message, "disabled")

	got = program.Check(c, decoded(t, `{"type":"direct_response","content":"42"}`))
	require.Equal(t, 2, got.Writes)

	lead := compiler(t, "cp__agent_orchestrate", nil)
	got = program.Check(lead, decoded(t, `{"prompt":"judge it"}`))
	require.Equal(t, "planner", got.Planner)
	got = program.Check(lead, decoded(t, `{"plan":{"steps":[{"id":"both","parallel":{"steps":[{"agent_id":"critic"},{"agent_id":"search","with":{"city":"Rome"}}]}}]}}`))
	require.Equal(t, "both[1]", got.Steps[1].Call)
	require.Equal(t, "both", got.Steps[1].Step)
	require.Equal(t, 10, got.Writes, "two calls, and the answer of another agent")
}
