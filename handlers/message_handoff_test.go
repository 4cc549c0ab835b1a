package handlers_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

const handoffWorkflow = messageWorkflow + `
  built: {type: boolean, default: false}
handoffs:
- {from: Interviewer, to: Architect, condition: "${interview_done} == True"}
- {from: Interviewer, to: user}
- {from: Architect, to: Critic, condition: "${built} == True"}
- {from: Architect, to: Interviewer}
`

func withHandoffs() map[string]string { return map[string]string{"oneturn.yaml": handoffWorkflow} }

func numbered(n int64) func(*events.AgentMessage) {
	return func(e *events.AgentMessage) { e.TurnSequence = n }
}

func TestHandoffFollowsTheVariablesAfterTheMessage(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.deliver("m1", "Interviewer", "What shall I build?")
	m := k.deliver("m2", "Interviewer", "NEXT")
	k.handled(again(m))
	require.Equal(t, "user", k.of("m1", "handoff")["to"])
	require.Equal(t, "Architect", k.of("m2", "handoff")["to"])
	require.Equal(t, "condition", k.of("m2", "handoff")["reason"])
	require.Equal(t, []string{"text", "context_update.interview_done", "handoff"}, k.kinds("m2"))
}

func TestMessageWithoutANumberLeavesTheOrderAsItIs(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	inRun := func(e *events.AgentMessage) { e.Run = "r1" }
	k.deliver("m5", "Interviewer", "Continue.", numbered(5), inRun)
	k.deliver("m6", events.AgentUser, "A shop.")
	k.deliver("m4", "Interviewer", "NEXT", numbered(4), inRun)
	require.Nil(t, k.variables()["interview_done"])
}

func TestUserIsFollowedByTheAgentThatSpokeLast(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.deliver("m1", "Interviewer", "What shall I build?")
	k.deliver("m2", events.AgentUser, "A shop.")
	require.Equal(t, "Interviewer", k.of("m2", "handoff")["to"])
	require.Equal(t, "last_speaker", k.of("m2", "handoff")["reason"])
}

// The tool sets the variable that the condition of the rule has.
func builds(context.Context, *tools.Call) (tools.Result, error) {
	return tools.Result{Value: json.RawMessage(`{}`), Set: map[string]any{"built": true}}, nil
}

func TestHandoffOfAMessageWithATurnFollowsItsResponse(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), builds)
	k.deliver("m1", "Architect", `{"title":"Shop"}`)
	require.Equal(t, true, k.responseOf("m1")["success"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
	require.Equal(t, "m1", k.of("m1", "handoff")["turn_idempotency_key"])
}

func TestMessageOutOfOrderSetsNothing(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.deliver("m2", "Interviewer", "Continue.", numbered(2))
	k.deliver("m1", "Interviewer", "NEXT", numbered(1))
	require.Equal(t, true, k.of("m1", "text")["out_of_order"])
	require.Nil(t, k.variables()["interview_done"])
	require.Nil(t, k.of("m1", "handoff")["to"])
	require.Equal(t, "out_of_order", k.of("m1", "handoff")["code"])
}

func TestHandoffWaitsForATurnThatWasDeferred(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), builds)
	full, id := true, ""
	h, deferred := k.bounded(func(c *handlers.Config) {
		c.Full = func() (bool, time.Time) { return full && k.of(id, "text") != nil, time.Now() } // there is room for the text alone
	})
	for _, id = range []string{"m1", "m2", "m3"} {
		h.Handle(t.Context(), k.writes(id, "Architect", `{"title":"Shop"}`))
		require.Nil(t, k.of(id, "handoff"))
	}
	require.Len(t, deferred.all, 1, "the places of the tenant are taken")
	require.Zero(t, k.entered.Load())
	full = false
	require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.again(deferred.all[0], 99)).Do)
	require.Equal(t, "Critic", k.of("m3", "handoff")["to"])
}

func TestHandoffOfADeadLetterWaitsForTheTurnThatASweepRuns(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), builds)
	full, id := true, ""
	h, _ := k.bounded(func(c *handlers.Config) {
		c.Full = func() (bool, time.Time) { return full && k.of(id, "text") != nil, time.Now() }
		c.DeferralQuota = func(context.Context, string, int) (bool, error) { return false, nil }
	})
	for _, id = range []string{"m1", "m2", "m3"} {
		h.Handle(t.Context(), k.writes(id, "Architect", `{"title":"Shop"}`))
	}
	letters := k.deadReasons()
	require.NotEmpty(t, letters)
	require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.resumes("m3")).Do)
	require.Equal(t, letters, k.deadReasons(), "a sweep makes no further one")
	require.Nil(t, k.of("m3", "handoff"))
	full = false
	require.Equal(t, inbound.Ack, h.Handle(t.Context(), k.resumes("m3")).Do)
	require.Equal(t, "Critic", k.of("m3", "handoff")["to"])
	require.EqualValues(t, 1, k.entered.Load())
}

func TestHandoffKnowsTheIDsOfItsChatWhateverTheSnapshotHas(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow + `
handoffs:
- {from: Interviewer, to: Architect, condition: "${chat_id} == 'chat'"}
- {from: Interviewer, to: user}
`}, nothing)
	k.deliver("m1", "Interviewer", "x", func(e *events.AgentMessage) { e.ContextVariables = map[string]any{"chat_id": "another"} })
	require.Equal(t, "Architect", k.of("m1", "handoff")["to"])
}

func TestMessageWithATriggerAloneIsMarkedAsOutOfOrder(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.deliver("m2", "Interviewer", "NEXT", numbered(2))
	k.deliver("m1", "Interviewer", "NEXT", numbered(1))
	require.Equal(t, true, k.of("m1", "text")["out_of_order"])
}
