package handlers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

func TestRetryOfACallWhoseToolHasReturnedNeedsConsent(t *testing.T) {
	t.Parallel()
	manifest := strings.ReplaceAll(programWorkflow, "free,", "free, guarded,") +
		"- {name: guarded, kind: go, auto: false, guards: [{on: output, schema: {type: object, properties: {id: {type: string, maxLength: 5}}}}]}\n"
	manifest = strings.Replace(manifest, "name: free, guarded,", "name: free,", 1)
	const tooManyValues = 200_000
	for name, c := range map[string]struct {
		tool   string
		result string
		code   events.Code
	}{
		"its result cannot be stored":            {"free", numbers(tooManyValues), events.CodeToolError},
		"its result breaks its output schema":    {"one", `{"id": 5}`, events.CodeToolError},
		"an output guard refuses its result":     {"guarded", `{"id": "far too long"}`, events.CodeGuardrail},
		"its result has no form that is written": {"free", `{"n": 1e999}`, events.CodeToolError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := true
			tool := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				if bad {
					return tools.Result{Value: []byte(c.result)}, nil
				}
				return echo(ctx, call)
			}
			k := newProgramKitOf(t, manifest, map[string]toolFunc{"two": echo, c.tool: tool})
			plan := strings.ReplaceAll(`{"type": "tool_calls", "calls": [{"tool_name": "two", "arguments": {"id": "x"}}, {"tool_name": "TOOL", "arguments": {"id": "$0.output.id"}}]}`, "TOOL", c.tool)
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", plan, 1)).Do)
			require.Equal(t, c.code, k.response().Code, k.response().Content)
			require.Equal(t, events.EffectHappened, k.stepResponse("1").EffectState)
			bad = false
			refused := k.retried(2, "turn")
			require.Equal(t, events.CodeBadArgs, refused.Code)
			require.Contains(t, refused.Content, "call 1 of tool "+c.tool+" ("+string(c.code)+", unsafe) has happened, though its result was not used")
			require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())
			m := k.retryAs(3, "again", "1")
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
			require.True(t, k.responseOf("again").Success, k.responseOf("again").Content)
			require.Equal(t, []string{"#0", "#1", "again#1"}, k.enteredCalls())
		})
	}
}

// stepResponse returns the response of a step of the turn.
func (k *programKit) stepResponse(step string) *events.ToolResponse {
	k.t.Helper()
	r, err := k.store.Last(k.t.Context(), subjects.TurnKey("app", "chat", "", "turn").WithCall(subjects.StepCall(step)).Public("tool_response"))
	require.NoError(k.t, err, step)
	response, err := events.ReadResponse(r.Data)
	require.NoError(k.t, err)
	return response
}
