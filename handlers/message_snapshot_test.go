package handlers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

const snapshotWorkflow = `
agents: {Architect: {model: Plan}, Critic: }
models:
  Plan: {type: object, required: [title], properties: {title: {type: string}}}
tools:
- {name: build, kind: go, agent: Architect, effect: idempotent}
handoffs:
- {from: Architect, to: Critic, condition: "${mood} == 'good'"}
- {from: Architect, to: user}
`

func TestHandoffAfterATurnThatIsContinuedKnowsTheSnapshotOfItsMessage(t *testing.T) {
	t.Parallel()
	ctx, drain := context.WithCancelCause(t.Context())
	runs := 0
	k := newMessageKit(t, map[string]string{"oneturn.yaml": snapshotWorkflow}, func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		if runs++; runs == 1 {
			drain(handlers.ErrDraining)
			<-ctx.Done()
		}
		return tools.Result{}, context.Cause(ctx)
	})
	m := k.writes("m1", "Architect", `{"title":"Shop"}`, func(e *events.AgentMessage) { e.ContextVariables = map[string]any{"mood": "good"} })
	require.NotEqual(t, inbound.Ack, k.Handle(ctx, m).Do)
	k.handled(again(m))
	require.Equal(t, true, k.responseOf("m1")["success"])
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestHandoffAfterATurnThatWasParkedKnowsTheSnapshotOfItsMessage(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{false, true} {
		k := newMessageKit(t, map[string]string{"oneturn.yaml": strings.Replace(snapshotWorkflow, "idempotent", "replay", 1)}, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
			if reads {
				if _, err := call.LoadContext(ctx); err != nil {
					return tools.Result{}, err
				}
			}
			_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
			return tools.Result{}, err
		})
		k.Drain() // a tool that asks is parked immediately
		k.deliver("m1", "Architect", `{"title":"Shop"}`, func(e *events.AgentMessage) { e.ContextVariables = map[string]any{"mood": "good"} })
		require.Nil(t, k.of("m1", "handoff"))
		k.kit.handled(k.answers(100, events.QuestionID("m1", "sure"), true))
		require.Equal(t, true, k.responseOf("m1")["success"])
		require.Equal(t, "Critic", k.of("m1", "handoff")["to"], reads)
	}
}
