package handlers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/sweep"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// condition is the condition in which a sweep finds a message whose inbound message is gone.
func (k *messageKit) condition(id string) sweep.Condition {
	k.t.Helper()
	s := &sweep.Sweep{Store: k.store, LeaseHeld: func(context.Context, idempotency.Lease) (bool, error) { return false, nil }}
	key := subjects.MessageKey("app", "chat", "", id)
	text, err := k.store.Last(k.t.Context(), key.Public(events.RecordText))
	require.NoError(k.t, err)
	f, err := s.CheckMessage(k.t.Context(), key, text.Time.Add(1))
	require.NoError(k.t, err)
	return f.Condition
}

// replayed is a workflow whose tools may ask and be parked.
func replayed(workflow string) string {
	return strings.Replace(workflow, "effect: unsafe", "effect: replay", 1)
}

func TestSweepLeavesAMessageWhoseTurnNeverRuns(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow + "compat: {silent: true}\n"}, nothing)
	k.deliver("m1", "Architect", `{"name":"Shop"}`)
	require.Nil(t, k.responseOf("m1"), "the workflow sends no response to failures")
	require.Equal(t, sweep.TurnEnded, k.condition("m1"))
}

func TestSweepFindsTheTurnOfAMessageUnderItsReusedKey(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": replayed(handoffWorkflow) + "on_key_reuse: run\n"}, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if call.Args["title"] == "Shop" {
			return tools.Result{}, nil
		}
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{}, err
	})
	k.Drain() // a tool that asks is parked immediately
	sameTurn := func(e *events.AgentMessage) { e.Turn = "turn" }
	k.deliver("m1", "Architect", `{"title":"Shop"}`, sameTurn)
	k.deliver("m2", "Architect", `{"title":"Bar"}`, sameTurn)
	require.NotNil(t, k.of("m1", "handoff"))
	require.Nil(t, k.of("m2", "handoff"))
	require.Equal(t, sweep.TurnParked, k.condition("m2"))
}

func TestMessageWithoutAHandoffWaitsForNoTurnOfAnEvent(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": replayed(messageWorkflow)}, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{}, err
	})
	k.Drain()
	k.deliverTurn("turn", "Architect", map[string]any{"title": "Shop"})
	k.deliver("m1", "Architect", `{"title":"Shop"}`, func(e *events.AgentMessage) { e.Turn = "turn" })
	require.Equal(t, sweep.TurnEnded, k.condition("m1"))
}

func TestSweepFindsAMessageWhoseChangesAreMissingThoughAnEventHasClaimedItsTurn(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow + `  asked:
    type: boolean
    default: false
    source: {type: state, triggers: [{type: agent_text, agent: Architect, match: {contains: Shop}}]}
`}, nothing)
	k.deliverTurn("turn", "Architect", map[string]any{"title": "Shop"})
	k.diesBefore(events.RecordContextUpdate, k.writes("m1", "Architect", `{"title":"Shop"}`, func(e *events.AgentMessage) { e.Turn = "turn" }))
	require.Equal(t, sweep.TurnOrphaned, k.condition("m1"))
	k.handled(k.resumes("m1"))
	require.NotNil(t, k.of("m1", events.RecordContextUpdate, "asked"))
	require.Equal(t, sweep.TurnEnded, k.condition("m1"))
	require.EqualValues(t, 1, k.entered.Load())
}
