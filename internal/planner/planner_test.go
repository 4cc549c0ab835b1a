package planner_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/internal/planner"
	"github.com/oneturn/oneturn/internal/tools"
)

// reasonOf returns the reason of a refusal.
func reasonOf(t *testing.T, err error) string {
	t.Helper()
	var refused *flow.Refused
	require.ErrorAs(t, err, &refused)
	require.NotEmpty(t, refused.Problems)
	require.Equal(t, events.CodeValidationFailed, events.CodeOf(err))
	return refused.Reason
}

func TestPlanNeedsAsManyModelCallsAsTheTableLists(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		plans      []any
		failing    bool // the second tool
		asked, all int  // planner; planner and responder
	}{
		{"direct response", []any{directPlan}, false, 1, 1},
		{"direct response under plan", []any{`{"plan":` + directPlan + `}`}, false, 1, 1},
		{"tools succeed", []any{goodPlan}, false, 1, 2},
		{"a tool fails", []any{goodPlan}, true, 1, 2},
		{"plan is refused", []any{badPlan}, false, 1, 2},
		{"malformed, then good", []any{"Sure! First I would look up the order", goodPlan}, false, 2, 3},
		{"malformed, then direct", []any{"Hm.", directPlan}, false, 2, 2},
		{"not a plan, then refused", []any{`{"calls":[]}`, badPlan}, false, 2, 3},
		{"malformed twice", []any{"Hm.", "Hm."}, false, 2, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, plan, answer := shop(t, flow.KindPlan), &script{replies: tt.plans}, &script{replies: []any{"Done."}}
			p.Responds = true
			planned, err := p.Plan(t.Context(), plan.ask)
			require.Equal(t, tt.asked, planned.Asked)
			var summary string
			switch {
			case err != nil:
				require.Equal(t, flow.ReasonPlannerInvalid, reasonOf(t, err))
				var refused *flow.Refused
				require.ErrorAs(t, err, &refused)
				summary = planner.RefusedSummary(refused)
			case planned.Program.Answer != nil:
				require.Equal(t, "On weekdays.", *planned.Program.Answer)
			default:
				summary = planner.PlanSummary(run(planned.Program, tt.failing))
			}
			if summary != "" {
				r := planner.Responder{Prompt: p.Input.Prompt, Summary: summary}
				reply, err := answer.ask(t.Context(), r.Request())
				require.NoError(t, err)
				content, err := planner.Content(reply)
				require.NoError(t, err)
				require.Equal(t, "Done.", content)
			}
			require.Len(t, plan.seen, tt.asked)
			require.Equal(t, tt.all, len(plan.seen)+len(answer.seen))
		})
	}
}

// run is what a runner makes of the good plan.
func run(p *flow.Program, failing bool) flow.PlanResult {
	e := flow.Ended{State: flow.State{}, Outcomes: map[string]flow.Outcome{}}
	for i, call := range p.Calls() {
		ok := !failing || i == 0
		e.State[call.ID] = flow.CallState{Called: true, Ended: true, Success: ok, Code: map[bool]string{false: "user_error"}[ok]}
		e.Outcomes[call.ID] = flow.Outcome{Output: map[string]any{"order_id": "A-1709"}, Message: map[bool]string{false: "printer offline"}[ok]}
	}
	return p.PlanResult(e)
}

func TestOrchestrationIsPlannedAtMostTwice(t *testing.T) {
	t.Parallel()
	nested := `{"steps":[{"id":"s1","agent":{"agent_id":"cp__agent_orchestrate","with":{"prompt":"and so on"}}}]}`
	tests := []struct {
		name    string
		replies []any
		asked   int
		reason  string // "" if there is a program
	}{
		{"good", []any{goodSteps}, 1, ""},
		{"good object", []any{json.RawMessage(goodSteps)}, 1, ""},
		{"under plan", []any{`{"plan":` + goodSteps + `}`}, 1, ""},
		{"under plan with bindings", []any{`{"plan":{"steps":[{"agent":{"agent_id":"find_order","with":{"number":"{{ bindings.n }}"}}}]},"bindings":{"n":"1"}}`}, 1, ""},
		{"empty, then good", []any{"", goodSteps}, 2, ""},
		{"malformed, then good", []any{"I will gather facts.", goodSteps}, 2, ""},
		{"words around it, then good", []any{"Here you are: " + goodSteps + " Good luck!", goodSteps}, 2, ""},
		{"unknown agent, then good", []any{badSteps, goodSteps}, 2, ""},
		{"unknown agent twice", []any{badSteps, badSteps}, 2, flow.ReasonPlannerInvalid},
		{"malformed twice", []any{"not json", `{"steps": [`}, 2, flow.ReasonPlannerInvalid},
		{"plans to plan", []any{nested, nested}, 2, flow.ReasonPlannerRecursion},
		{"null", []any{json.RawMessage("null"), json.RawMessage("[]")}, 2, flow.ReasonPlannerInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, model := shop(t, flow.KindOrchestration), &script{replies: tt.replies}
			p.Tools, p.Options.Tools = nil, nil
			add(t, p, "cp__agent_orchestrate", "", "")
			add(t, p, "find_order", orderInput, orderOutput)
			planned, err := p.Plan(t.Context(), model.ask)
			require.Equal(t, tt.asked, planned.Asked)
			require.Len(t, model.seen, tt.asked)
			again, errAgain := p.Compile(planned.Reply)
			if tt.reason == "" {
				require.NoError(t, err)
				require.NoError(t, errAgain)
				require.Equal(t, planned.Program, again)
				return
			}
			require.Equal(t, tt.reason, reasonOf(t, err))
			require.Equal(t, tt.reason, reasonOf(t, errAgain), "a worker that takes over reads the stored reply")
		})
	}
}

func TestRefusedPlanIsAskedForAgainWhereNoResponderExplainsIt(t *testing.T) {
	t.Parallel()
	p, model := shop(t, flow.KindPlan), &script{replies: []any{badPlan, goodPlan}}
	planned, err := p.Plan(t.Context(), model.ask)
	require.NoError(t, err)
	require.Len(t, planned.Program.Steps, 2)
	require.Len(t, model.seen, 2)
}

func TestSecondRequestHasTheReplyAndWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first any
		want  []string
	}{
		"malformed": {"I will look it up.", []string{"cannot be read", "begin with {", `it begins with "I will look it up."`, "exactly one JSON object"}},
		"refused":   {badSteps, []string{`"oracle" is not an agent`, "You may call: find_order, print_label."}},
		"long":      {`{"steps":[` + strings.Repeat(" ", 100_000), []string{"cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, model := shop(t, flow.KindOrchestration), &script{replies: []any{tt.first, goodSteps}}
			_, err := p.Plan(t.Context(), model.ask)
			require.NoError(t, err)
			first, second := model.seen[0], model.seen[1]
			require.Equal(t, 1, first.Round)
			require.Equal(t, 2, second.Round)
			require.Equal(t, first.System, second.System)
			require.Equal(t, first.Messages[0], second.Messages[0])
			require.Equal(t, []string{"user", "assistant", "user"}, []string{second.Messages[0].Role, second.Messages[1].Role, second.Messages[2].Role})
			reply, _ := tt.first.(string)
			require.True(t, strings.HasPrefix(second.Messages[1].Content, reply[:10]))
			require.Less(t, len(second.Messages[1].Content), 17<<10)
			for _, want := range tt.want {
				require.Contains(t, second.Messages[2].Content, want)
			}
			var one, two tools.Call
			one.IdempotencyKey, two.IdempotencyKey = "key", "key"
			first.Put(&one)
			second.Put(&two)
			require.Equal(t, "key", one.IdempotencyKey)
			require.NotEqual(t, one.IdempotencyKey, two.IdempotencyKey, "a second question is another call")
		})
	}
}

func TestFailureOfThePlannerEndsThePlanningWithItsCode(t *testing.T) {
	t.Parallel()
	down := &events.Error{Code: events.CodeToolError, Msg: "connection refused"}
	for _, replies := range [][]any{{down}, {"Hm.", down}} {
		p, model := shop(t, flow.KindOrchestration), &script{replies: replies}
		planned, err := p.Plan(t.Context(), model.ask)
		require.ErrorIs(t, err, error(down))
		require.Equal(t, events.CodeToolError, events.CodeOf(err))
		require.Equal(t, len(replies), planned.Asked)
		require.Nil(t, planned.Reply)
	}
}

func TestPlannedProgramIsNotPlannedAgainWhileItRuns(t *testing.T) {
	t.Parallel()
	err := planner.Recursion(flow.KindOrchestration)
	require.Equal(t, flow.ReasonPlannerRecursion, reasonOf(t, err))
	require.Contains(t, err.Feedback(), "/prompt: a program that a planner wrote cannot be planned again")
}

func TestStoredReplyIsBoundedAndCompilesAlike(t *testing.T) {
	t.Parallel()
	long := goodSteps + strings.Repeat(" ", planner.MaxReply)
	for _, reply := range []any{long + "x", long, json.RawMessage(long), json.RawMessage(`"` + strings.Repeat(`a`, 3*planner.MaxReply) + `"`)} {
		p, model := shop(t, flow.KindOrchestration), &script{replies: []any{reply, reply}}
		planned, err := p.Plan(t.Context(), model.ask)
		_, errAgain := p.Compile(planned.Reply)
		require.Equal(t, err == nil, errAgain == nil)
		require.LessOrEqual(t, len(planned.Reply), planner.MaxReply)
	}
}
