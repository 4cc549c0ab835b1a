package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/failpoint"
)

func TestFaultsBecomeHitsOfFailpoints(t *testing.T) {
	t.Parallel()
	const plan = `"plan": {"calls": [{}, {}, {}]}`
	for _, row := range []struct{ about, faults, want, why string }{
		{plan, `{"at": "in_tool", "call": "1", "do": "kill"}`, "", ""},
		{plan, `{"at": "after_call", "call": "1", "do": "kill"}`, "after_step_call=kill@2", ""},
		{plan, `{"at": "after_response", "call": "0", "do": "kill"}, {"at": "after_claim", "do": "kill"}`, "after_step_response=kill@1;after_claim=kill@1", ""},
		{plan, `{"at": "write_response", "call": "2", "epoch": 1, "do": "drop_ack"}`, "finish=drop_ack@3", ""},
		{plan, `{"at": "before_response", "do": "kill"}`, "after_tool=kill@1", ""},
		{`"needs": ["planner"], ` + plan, `{"at": "write_response", "call": "0", "do": "drop_ack"}`, "finish=drop_ack@2", ""},
		{plan, `{"at": "after_program", "do": "kill"}`, "after_program=kill@1", ""},
		{plan, `{"at": "after_lunch", "do": "kill"}`, "", "no failpoint for after_lunch"},
		{plan, `{"at": "after_response", "call": "7", "do": "kill"}`, "", "no step 7"},
		{plan, `{"at": "in_tool", "call": "1", "do": "pause"}`, "", "cannot do pause"},
		{`"orchestrate": {"plan": {"steps": [{}, {"id": "g", "parallel": {"steps": [{}, {}]}}]}}`, `{"at": "after_tool", "call": "g[1]", "do": "kill"}`, "after_step=kill@3", ""},
	} {
		c := caseOf(t, `{"name": "f", "faults": [`+row.faults+`], `+row.about+`}`)
		got, why := c.failpoints()
		if !failpoint.Enabled && (row.want != "" || row.why != "" && c.Faults[0].Do != "pause") {
			require.Equal(t, "built without -tags failpoints", why, row.faults)
			continue
		}
		require.Equal(t, row.want, got, row.faults)
		require.Contains(t, why, row.why, row.faults)
	}
}

func TestEachFaultOfTheCasesCanBeDone(t *testing.T) {
	t.Parallel()
	for _, c := range shared(t) {
		_, why := c.failpoints()
		require.Contains(t, []string{"", "built without -tags failpoints"}, why, c.Name)
	}
}
