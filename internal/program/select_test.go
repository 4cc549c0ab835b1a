package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/internal/program"
)

func TestAutomaticToolsComeBeforeOthersThatWouldRunAProgram(t *testing.T) {
	t.Parallel()
	const (
		run    = "- {name: run_plan, kind: plan, agent: Assistant}\n"
		second = "- {name: second, kind: plan, agent: Lead}\n"
		inner  = "- {name: inner, kind: plan, auto: false}\n"
		mine   = "- {name: mine, kind: plan, agent: Lead, auto: false}\n"
		group  = "- {name: group, kind: orchestrate, agent: Lead}\n"
		plan   = `{"type": "tool_calls", "calls": []}`
		prompt = `{"prompt": "a hotel"}`
		head   = "agents: {Assistant: {}, Lead: {}}\ntools:\n- {name: t, kind: go, auto: false}\n"
	)
	for _, test := range []struct{ tools, agent, data, want, err string }{
		{tools: inner + run, data: plan, want: "run_plan"},
		{tools: inner + mine + run, data: plan, want: "run_plan"},
		{tools: inner + mine + run, agent: "Lead", data: plan, want: "run_plan"},
		{tools: inner, data: plan, want: "inner"},
		{tools: inner + group, data: plan, want: "inner"},
		{tools: inner + group, data: prompt, want: "group"},
		{tools: inner + group, data: `{"stepz": []}`, want: "group"},
		{tools: inner + mine, data: plan, err: "several tools for it (inner, mine)"},
		{tools: inner + run + second, data: plan, err: "several tools for it (run_plan of agent Assistant, second of agent Lead)"},
		{tools: inner + run + second, agent: "Lead", data: plan, want: "second"},
		{tools: run + group, data: prompt, err: "several tools for it (run_plan of agent Assistant, group of agent Lead)"},
		{tools: run + group, data: `{"plan": {"calls": []}}`, want: "run_plan"},
		{tools: run + group, data: `{"plan": {"steps": []}}`, want: "group"},
		{tools: run, data: `{"steps": []}`, err: "no tool of kind orchestrate"},
	} {
		b, err := program.Select(load(t, head+test.tools), "W", test.agent, "", decoded(t, test.data))
		if test.err != "" {
			require.ErrorContains(t, err, test.err, test)
			continue
		}
		require.NoError(t, err, test)
		require.Equal(t, test.want, b.Tool, test)
	}
}
