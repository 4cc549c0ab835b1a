package flow_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/oneturn/oneturn/flow"
)

func ids(calls []*flow.Call) []string {
	var list []string
	for _, c := range calls {
		list = append(list, c.ID)
	}
	return list
}

func group(id string, merge flow.Merge, parallel int, children int) flow.Step {
	step := flow.Step{ID: id, Group: true, Merge: merge, Parallel: parallel, Key: id}
	for i := range children {
		step.Calls = append(step.Calls, flow.Call{ID: fmt.Sprintf("%s[%d]", id, i)})
	}
	return step
}

func single(id string) flow.Step {
	return flow.Step{ID: id, Calls: []flow.Call{{ID: id, Key: id}}, Key: id}
}

var (
	succeeded = flow.CallState{Called: true, Ended: true, Success: true}
	failed    = flow.CallState{Called: true, Ended: true, Code: "tool_error"}
	running   = flow.CallState{Called: true}
)

func won(seq uint64) flow.CallState {
	return flow.CallState{Called: true, Ended: true, Success: true, Seq: seq}
}

func TestNextFollowsFromWhatIsStored(t *testing.T) {
	t.Parallel()
	row := &flow.Program{Steps: []flow.Step{single("a"), single("b")}}
	tolerant := &flow.Program{Steps: []flow.Step{single("a"), single("b")}}
	tolerant.Steps[0].Continue = true
	fan := &flow.Program{Steps: []flow.Step{group("g", flow.MergeCollect, 2, 3), single("b")}}
	race := &flow.Program{Steps: []flow.Step{group("g", flow.MergeFirstSuccess, 2, 3), single("b")}}
	waiting := flow.CallState{Called: true, Waiting: true}
	for name, c := range map[string]struct {
		program     *flow.Program
		state       flow.State
		start, stop []string
		wait        bool
		halt        string
	}{
		"the first step begins":                         {program: row, start: []string{"a"}},
		"a step waits for the one before":               {program: row, state: flow.State{"a": running}, wait: true},
		"a success begins the next":                     {program: row, state: flow.State{"a": succeeded}, start: []string{"b"}},
		"a failure halts":                               {program: row, state: flow.State{"a": failed}, halt: "a"},
		"a tolerated failure does not":                  {program: tolerant, state: flow.State{"a": failed}, start: []string{"b"}},
		"all steps over":                                {program: row, state: flow.State{"a": succeeded, "b": succeeded}},
		"a group begins as many calls as it has places": {program: fan, start: []string{"g[0]", "g[1]"}, wait: true},
		"a call that ended leaves its place":            {program: fan, state: flow.State{"g[0]": failed, "g[1]": running}, start: []string{"g[2]"}, wait: true},
		"a call that waits for people leaves its place": {program: fan, state: flow.State{"g[0]": waiting, "g[1]": running}, start: []string{"g[2]"}, wait: true},
		"a failed call halts when its group is over":    {program: fan, state: flow.State{"g[0]": failed, "g[1]": succeeded, "g[2]": running}, wait: true},
		"and then it does":                              {program: fan, state: flow.State{"g[0]": succeeded, "g[1]": failed, "g[2]": failed}, halt: "g[1]"},
		"a race stops the others at the first success":  {program: race, state: flow.State{"g[0]": running, "g[1]": won(7)}, stop: []string{"g[0]"}, wait: true},
		"and is over when they have ended":              {program: race, state: flow.State{"g[0]": failed, "g[1]": won(7)}, start: []string{"b"}},
		"a race continues after a failure":              {program: race, state: flow.State{"g[0]": failed, "g[1]": running}, start: []string{"g[2]"}, wait: true},
		"a race without a success has failed":           {program: race, state: flow.State{"g[0]": failed, "g[1]": failed, "g[2]": failed}, halt: "g[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := c.program.Next(c.state)
			require.Equal(t, c.start, ids(n.Start))
			require.Equal(t, c.stop, ids(n.Stop))
			require.Equal(t, c.wait, n.Wait)
			halt := ""
			if n.Halt != nil {
				halt = n.Halt.ID
			}
			require.Equal(t, c.halt, halt)
		})
	}
}

func TestTheSuccessThatWasStoredFirstWinsARace(t *testing.T) {
	t.Parallel()
	race := &flow.Program{Steps: []flow.Step{group("g", flow.MergeFirstSuccess, 3, 3)}}
	state := flow.State{"g[0]": won(9), "g[1]": won(4), "g[2]": failed}
	require.False(t, race.Visible("g[0]", state))
	require.True(t, race.Visible("g[1]", state))
	r := race.OrchestrationResult(flow.Ended{State: state, Outcomes: map[string]flow.Outcome{
		"g[0]": {Output: "late"}, "g[1]": {Output: "first"}, "g[2]": {Message: "no"},
	}}, func(call string) string { return "t#" + call })
	encoded, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"status":"success","success":true,"bindings":{"g":"first"},"errors":[{"step_id":"g[2]","error":"no"}],"steps":[
		{"id":"g","type":"parallel","status":"success","children":[
			{"id":"g[0]","type":"agent","status":"success","exec_id":"t#g[0]","output":"late","elapsed_ms":0},
			{"id":"g[1]","type":"agent","status":"success","exec_id":"t#g[1]","output":"first","elapsed_ms":0},
			{"id":"g[2]","type":"agent","status":"failed","exec_id":"t#g[2]","error":{"code":"tool_error","message":"no"},"elapsed_ms":0}]}]}`, string(encoded))
}

// TestAProgramEndsWhateverTheOrder runs random programs with random outcomes in random order.
func TestAProgramEndsWhateverTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		program := &flow.Program{Kind: flow.KindOrchestration}
		for i := range rapid.IntRange(0, 4).Draw(t, "steps") {
			id := fmt.Sprint("s", i)
			step := single(id)
			if rapid.Bool().Draw(t, "group") {
				merge := rapid.SampledFrom([]flow.Merge{flow.MergeCollect, flow.MergeFirstSuccess}).Draw(t, "merge")
				step = group(id, merge, rapid.IntRange(1, 3).Draw(t, "parallel"), rapid.IntRange(1, 4).Draw(t, "children"))
			}
			step.Continue = rapid.Bool().Draw(t, "continue")
			program.Steps = append(program.Steps, step)
		}
		state, started := flow.State{}, map[string]bool{}
		seq := uint64(0)
		for {
			n := program.Next(state)
			if len(n.Start) == 0 && !n.Wait {
				break
			}
			for _, call := range n.Start {
				require.False(t, started[call.ID], "a call starts once")
				started[call.ID] = true
				state[call.ID] = flow.CallState{Called: true}
			}
			var open []string
			for id, c := range state {
				if c.Called && !c.Ended {
					open = append(open, id)
				}
			}
			require.NotEmpty(t, open, "there is something to wait for")
			slices.Sort(open)
			seq++
			end := flow.CallState{Called: true, Ended: true, Seq: seq, Success: rapid.Bool().Draw(t, "success")}
			if !end.Success {
				end.Code = "tool_error"
			}
			state[rapid.SampledFrom(open).Draw(t, "ends")] = end
		}
		r := program.OrchestrationResult(flow.Ended{State: state, Outcomes: map[string]flow.Outcome{}}, func(string) string { return "" })
		require.Len(t, r.Steps, len(program.Steps))
		halted := program.Next(state).Halt != nil
		require.Equal(t, halted, r.Status == flow.StatusFailed)
		for i, step := range r.Steps {
			if !halted {
				require.NotEqual(t, flow.StatusSkipped, step.Status, "step %d", i)
			}
		}
	})
}
