package handlers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// The delivery after the one that has parked the turn finds it parked: it continues without that message.
func TestMessageOfAParkedTurnThatComesAgainDoesNotHandOff(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": strings.Replace(handoffWorkflow, "unsafe", "replay", 1)}, func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Set: map[string]any{"built": true}}, err
	})
	k.Drain() // a tool that asks is parked immediately
	m := k.deliver("m1", "Architect", `{"title":"Shop"}`)
	k.handled(again(m))
	require.Nil(t, k.of("m1", "handoff"))
	k.kit.handled(k.answers(100, events.QuestionID("m1", "sure"), true))
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}
