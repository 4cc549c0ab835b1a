package handlers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
)

const onePlanTool = `
agents: {A: , O: }
tools:
- {name: run_plan, kind: plan, agent: A, uses: [one, two]}
- {name: cp__agent_orchestrate, kind: orchestrate, agent: O, uses: [one, two]}
- {name: one, kind: go, auto: false}
- {name: two, kind: go, auto: false}
`

// TestContentOfARefusedProgramNamesItsOwnerAndThePlace: readers of the content do not see the payload.
func TestContentOfARefusedProgramNamesItsOwnerAndThePlace(t *testing.T) {
	t.Parallel()
	const ids = `"turn_idempotency_key": "turn", "context": {"app_id": "app", "chat_id": "chat", "workflow_name": "WF"}}`
	for want, event := range map[string]string{
		"The program of workflow WF is not run: tool_name is missing; it has to be a string (at /calls/0/tool_name).":                  `{"kind": "plan_ready", "plan": {"type": "tool_calls", "calls": [{}]}, `,
		"The program of agent A is not run: arguments of call 0 have to be an object, got string (at /calls/0/arguments, and 1 more).": `{"kind": "plan_ready", "agent": "A", "plan": {"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": ""}, {}]}, `,
		`The program of agent A is not run: call 0: "tow" is not a tool that this plan may call. Did you mean "two"?`:                  `{"kind": "plan_ready", "agent": "A", "plan": {"type": "tool_calls", "calls": [{"tool_name": "tow"}]}, `,
		`The program of agent O is not run: an agent needs agent_id (at /steps/0/agent/agent_id).`:                                     `{"kind": "structured_output_ready", "agent": "O", "model_name": "", "auto_tool_mode": true, "structured_data": {"plan": {"steps": [{"agent": {}}]}}, `,
		`The program of workflow WF is not run: type has to be "tool_calls" or "direct_response"; it is "toolcalls".`:                  `{"kind": "plan_ready", "plan": {"type": "toolcalls"}, `,
		`The plan cannot be read at "/calls/0/arguments/n": exponent over 308: send the number as a string.`:                           `{"kind": "plan_ready", "plan": {"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"n": 1e999}}]}, `,
	} {
		k := newProgramKitOf(t, onePlanTool, nil)
		m := k.message(1, 1)
		m.Data = []byte(event + ids)
		if strings.Contains(event, events.KindPlanReady) {
			m.Subject = k.space.In("default", events.KindPlanReady, "app", "WF", "chat")
		}
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do, want)
		require.Equal(t, want, k.response().Content)
	}
}
