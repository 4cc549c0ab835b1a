package handlers_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// Programs, planners and tools that try to break a turn, or to get more than its limits allow.

// gives is a tool with one result.
func gives(result string) toolFunc {
	return func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: json.RawMessage(result)}, nil
	}
}

// calls is a plan of calls, each the name of a tool and its arguments.
func calls(list ...string) string {
	for i, call := range list {
		name, arguments, _ := strings.Cut(call, " ")
		list[i] = `{"tool_name": "` + name + `", "arguments": ` + arguments + `}`
	}
	return `{"type": "tool_calls", "calls": [` + strings.Join(list, ",") + `]}`
}

// repeated returns n times the same text.
func repeated(n int, text string) (list []string) {
	for range n {
		list = append(list, text)
	}
	return list
}

// numbers is a JSON object with n values.
func numbers(n int) string { return `{"l": [` + strings.Join(repeated(n, "1"), ",") + `]}` }

// TestResultThatCannotBeReadFailsItsStepOnly has results that are stored as blobs, which are not decoded when they are stored.
func TestResultThatCannotBeReadFailsItsStepOnly(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 300<<10)
	for name, c := range map[string]struct{ result, plan, reason string }{
		"too many values":  {numbers(200_000), calls(`free {}`, `two {}`), "more than 100000 values"},
		"nested too deep":  {strings.Repeat(`{"k":`, 100) + `"` + large + `"` + strings.Repeat("}", 100), calls(`free {}`), "nested more than 64 deep"},
		"a key twice":      {`{"v": 1, "v": "` + large + `"}`, calls(`free {}`), "duplicate key"},
		"no JSON":          {`{"v": "` + large, calls(`free {}`), "the document ends inside a string"},
		"no UTF-8":         {"{\"v\": \"\xff" + large + `"}`, calls(`free {}`), "invalid UTF-8"},
		"a number":         {`{"v": 1e999999, "w": "` + large + `"}`, calls(`free {}`), "exponent over 308"},
		"a nested program": {numbers(60_000), calls(`run_plan {"plan": `+calls(`free {}`, `free {}`, `free {}`)+`}`, `two {}`), "more than 100000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"free": gives(c.result), "two": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", c.plan, 1)).Do)
			r := k.response()
			require.Equal(t, events.CodeToolError, r.Code, r.Content)
			require.Contains(t, r.Content, "has run, but no event can hold its result")
			require.Contains(t, r.Content, c.reason)
			require.NotContains(t, k.enteredCalls(), "#1", "the plan has halted")
			require.Contains(t, k.names(), "e s_0.tool_response")
			payload, ok := r.Payload.(map[string]any)
			require.True(t, ok)
			require.Equal(t, "failed", payload["status"])
		})
	}
}
