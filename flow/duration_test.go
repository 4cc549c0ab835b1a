package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/flow"
)

func TestDurationCountsTimeInWhichSeveralCallsOfAGroupWorkedOnce(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1000, 0)
	worked := func(from, to int) flow.Outcome {
		return flow.Outcome{EndedAt: begin.Add(time.Duration(to) * time.Millisecond), Duration: time.Duration(to-from) * time.Millisecond}
	}
	fan := flow.Program{Steps: []flow.Step{single("a"), group("g", flow.MergeCollect, 3, 4), single("b"), single("c")}}
	for name, c := range map[string]struct {
		outcomes map[string]flow.Outcome
		want     int
	}{
		"nothing ran":                           {nil, 0},
		"a call without time":                   {map[string]flow.Outcome{"a": {}}, 0},
		"one after the other":                   {map[string]flow.Outcome{"a": worked(0, 10), "b": worked(500, 530)}, 40},
		"clocks of two workers differ":          {map[string]flow.Outcome{"a": worked(100, 110), "b": worked(100, 130)}, 40},
		"at the same time":                      {map[string]flow.Outcome{"g[0]": worked(0, 10), "g[1]": worked(5, 20), "g[2]": worked(6, 7)}, 20},
		"with a pause for people":               {map[string]flow.Outcome{"g[0]": worked(0, 10), "g[1]": worked(900, 920)}, 30},
		"given in another order":                {map[string]flow.Outcome{"g[0]": worked(30, 40), "g[1]": worked(0, 35), "g[3]": {}}, 40},
		"a group and the steps around it":       {map[string]flow.Outcome{"a": worked(0, 5), "g[0]": worked(5, 10), "g[1]": worked(5, 10), "c": worked(10, 15)}, 15},
		"a call that is not in this program":    {map[string]flow.Outcome{"other": worked(0, 5)}, 0},
		"an end that no response has a time of": {map[string]flow.Outcome{"a": {Duration: 7 * time.Millisecond}}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, time.Duration(c.want)*time.Millisecond, fan.Duration(flow.Ended{Outcomes: c.outcomes}))
		})
	}
}
