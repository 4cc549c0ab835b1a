package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/flow"
)

func keptIDs(p *flow.Program, s flow.State) (ids []string) {
	for _, call := range p.Kept(s) {
		ids = append(ids, call.ID)
	}
	return ids
}

func TestRetryKeepsWhatThePassedStepsAndTheSuccessesOfTheLastOneHave(t *testing.T) {
	t.Parallel()
	ok, failed := flow.CallState{Called: true, Ended: true, Success: true, Seq: 5}, flow.CallState{Called: true, Ended: true, Code: "tool_error", Seq: 4}
	open := flow.CallState{Called: true}
	a, b, c := flow.Step{ID: "a", Calls: []flow.Call{{ID: "a"}}}, groupOf("g", flow.MergeCollect, "g0", "g1", "g2"), flow.Step{ID: "c", Calls: []flow.Call{{ID: "c"}}}
	race := groupOf("r", flow.MergeFirstSuccess, "r0", "r1")
	tolerated := b
	tolerated.Continue = true
	for name, test := range map[string]struct {
		steps []flow.Step
		state flow.State
		want  []string
	}{
		"the failed call runs":                             {[]flow.Step{a, c}, flow.State{"a": ok, "c": failed}, []string{"a"}},
		"nothing has ended":                                {[]flow.Step{a, c}, flow.State{"a": open}, nil},
		"the successes of a group that failed":             {[]flow.Step{b, c}, flow.State{"g0": ok, "g1": failed, "g2": ok}, []string{"g0", "g2"}},
		"of a group that was cut off":                      {[]flow.Step{b, c}, flow.State{"g0": failed, "g1": ok, "g2": open}, []string{"g1"}},
		"of a group that may fail and was cut off":         {[]flow.Step{tolerated, c}, flow.State{"g0": failed, "g1": ok}, []string{"g1"}},
		"a tolerated failure that the program has passed":  {[]flow.Step{tolerated, c}, flow.State{"g0": failed, "g1": ok, "g2": failed, "c": failed}, []string{"g0", "g1", "g2"}},
		"a race that is over":                              {[]flow.Step{race, c}, flow.State{"r0": ok, "r1": failed, "c": failed}, []string{"r0", "r1"}},
		"a race with a winner, whose other call never ran": {[]flow.Step{race, c}, flow.State{"r0": ok}, []string{"r0"}},
		"a race without a winner":                          {[]flow.Step{race, c}, flow.State{"r0": failed, "r1": failed}, nil},
		"all":                                              {[]flow.Step{a, c}, flow.State{"a": ok, "c": ok}, []string{"a", "c"}},
	} {
		p := &flow.Program{Kind: flow.KindOrchestration, Steps: test.steps}
		require.Equal(t, test.want, keptIDs(p, test.state), name)
	}
}

func groupOf(id string, merge flow.Merge, calls ...string) flow.Step {
	s := flow.Step{ID: id, Group: true, Merge: merge, Parallel: 4}
	for _, call := range calls {
		s.Calls = append(s.Calls, flow.Call{ID: call})
	}
	return s
}

func TestProgramThatWasStoredHasTheSameStepsUnlessACallDiffers(t *testing.T) {
	t.Parallel()
	p := &flow.Program{Kind: flow.KindPlan, Steps: []flow.Step{
		{ID: "0", Calls: []flow.Call{{ID: "0", Tool: "one", Arguments: map[string]any{"n": json.Number("1.0"), "o": map[string]any{}}}}},
		{ID: "1", Calls: []flow.Call{{ID: "1", Tool: "two", Arguments: map[string]any{}, Needs: []string{"0"}}}},
	}}
	stored := func(change func(p *flow.Program)) *flow.Program {
		data, err := json.Marshal(p)
		require.NoError(t, err)
		q, err := flow.DecodeProgram(data)
		require.NoError(t, err)
		change(q)
		return q
	}
	require.True(t, p.SameSteps(stored(func(*flow.Program) {})))
	require.True(t, p.SameSteps(stored(func(q *flow.Program) { q.Limits.Calls, q.Steps[0].Calls[0].Timeout, q.Depth = 7, 5, 2 })))
	for _, change := range []func(q *flow.Program){
		func(q *flow.Program) { q.Steps = q.Steps[:1] },
		func(q *flow.Program) { q.Steps[0].Calls[0].Tool = "other" },
		func(q *flow.Program) { q.Steps[0].Calls[0].Arguments["n"] = json.Number("1") },
		func(q *flow.Program) { q.Steps[1].Calls[0].Needs = nil },
		func(q *flow.Program) { q.Steps[1].Continue = true },
		func(q *flow.Program) { q.Bindings = map[string]any{"a": "b"} },
	} {
		require.False(t, p.SameSteps(stored(change)))
	}
}
