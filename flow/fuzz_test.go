package flow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
)

// FuzzCompile compiles any value as a plan and as an orchestration: the result is the same each time,
// what is refused is refused with readable problems, and what is not can be stored and resolved.
func FuzzCompile(f *testing.F) {
	files, err := filepath.Glob("../internal/test/programcases/testdata/*/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		var c programCase
		require.NoError(f, json.Unmarshal(data, &c))
		if c.Orchestrate != nil {
			f.Add(string(c.Orchestrate))
		} else {
			f.Add(string(c.Plan))
		}
	}
	f.Add(call(`{"v":"$0.output.x.y","w":{"$0.output":["$$0.output.x","$1.output"]}}`))
	f.Add(with(`{"v":"{{ k.x }} \\{{ {{ result.k }}","plan":{"steps":[]}}`))
	tools := append(toolWith(f, `{"properties":{"x":{"type":["string","object"],"additionalProperties":true},"n":{"type":"integer"}}}`),
		flow.Tool{Name: "run_plan", Program: flow.KindPlan}, flow.Tool{Name: "cp__agent_orchestrate", Program: flow.KindOrchestration})
	tools[0].Input = compiled(f, `{"type":"object","properties":{"n":{"type":"integer"},"x":{"type":["string","null"]}}}`)
	for _, name := range []string{"b", "c", "d", "pay", "search", "writer"} {
		tool := tools[0]
		tool.Name = name
		tools = append(tools, tool)
	}
	f.Fuzz(func(t *testing.T, text string) {
		data, err := events.Decode([]byte(text))
		if err != nil {
			return
		}
		for _, h := range []*hostile{{plan: text, tools: tools}, {orchestrate: text, tools: tools}} {
			program, err := h.compile(data)
			if refused, ok := asRefused(err); ok {
				checkRefused(t, h, data, refused)
			} else if program != nil && program.Steps != nil {
				checkProgram(t, program, tools)
			}
		}
	})
}

func checkRefused(t *testing.T, h *hostile, data any, refused *flow.Refused) {
	t.Helper()
	require.NotEmpty(t, refused.Problems)
	require.LessOrEqual(t, len(refused.Problems), flow.MaxProblems)
	for _, p := range refused.Problems {
		require.NotEmpty(t, p.Rule)
		require.NotEmpty(t, p.Message)
		require.True(t, utf8.ValidString(p.Path+p.Message), "%q %q", p.Path, p.Message)
	}
	_, err := h.compile(data)
	again, ok := asRefused(err)
	require.True(t, ok)
	require.Equal(t, refused, again)
	require.True(t, utf8.ValidString(refused.Feedback()))
}

// checkStored: the worker that has compiled a program runs the same one as a worker that has read it.
func checkStored(t *testing.T, compiled, stored *flow.Program) {
	t.Helper()
	require.True(t, compiled.SameSteps(stored))
	require.Equal(t, []any{compiled.Limits, compiled.Depth, compiled.Reasoning, compiled.Answer}, []any{stored.Limits, stored.Depth, stored.Reasoning, stored.Answer})
	for i, call := range compiled.Calls() {
		require.Equal(t, call.Timeout, stored.Calls()[i].Timeout)
	}
	for i := range compiled.Steps {
		require.Equal(t, compiled.Steps[i].Parallel, stored.Steps[i].Parallel)
	}
}

func checkProgram(t *testing.T, program *flow.Program, tools flow.ToolList) {
	t.Helper()
	data, err := json.Marshal(program)
	require.NoError(t, err)
	stored, err := flow.DecodeProgram(data)
	require.NoError(t, err)
	again, err := json.Marshal(stored)
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(again))
	checkStored(t, program, stored)
	if tree, err := events.Decode(data); err == nil { // else it has no place in a record
		stored, err = flow.DecodeProgram(events.JSONOf(tree))
		require.NoError(t, err)
		checkStored(t, program, stored)
	}

	var earlier []string
	state := flow.State{}
	for _, call := range stored.Calls() {
		require.NotContains(t, earlier, call.ID)
		for _, id := range call.Needs {
			require.Contains(t, earlier, id)
		}
		// Data that looks like references arrives as it is.
		output := map[string]any{"x": "$0.output.x {{ k }}", "n": json.Number("1")}
		_, err := stored.Resolve(call, tools, func(id string) (any, bool) { return output, slices.Contains(earlier, id) })
		if err != nil {
			require.Contains(t, []events.Code{events.CodeBadArgs, events.CodeTooLarge}, events.CodeOf(err))
		}
		earlier = append(earlier, call.ID)
		state[call.ID] = flow.CallState{Called: true, Ended: true, Success: true}
	}
	next := stored.Next(state)
	require.True(t, len(next.Start) == 0 && !next.Wait && next.Halt == nil, "a program whose calls have succeeded is over")
}
