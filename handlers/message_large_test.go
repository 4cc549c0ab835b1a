package handlers_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/variables"
)

// longText is longer than a record holds.
var longText = strings.Repeat("no JSON ", store.InlineLimit/8+1)

// failsOnce is a store of variables of which the nth change by a message fails.
type failsOnce struct {
	variables.Store

	n int
}

func (v *failsOnce) Apply(ctx context.Context, app, chat string, m variables.Message) (variables.Applied, error) {
	if v.n--; v.n == 0 {
		return variables.Applied{}, errors.New("no response from the server")
	}
	return v.Store.Apply(ctx, app, chat, m)
}

func TestLargeOutputThatCannotBeReadIsTheSameTurnForTheNextWorker(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, withHandoffs(), nothing)
	k.Variables = &failsOnce{k.Variables, 2} // for the handoff after the turn
	m := k.writes("m1", "Architect", longText)
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
	require.Equal(t, "validation_failed", k.responseOf("m1")["code"])
	k.handled(again(m))
	require.Equal(t, "Interviewer", k.of("m1", "handoff")["to"])
	require.Empty(t, k.deadReasons())
}

func TestHandoffKnowsALargeTextForTheNextWorkerToo(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow + `
handoffs:
- {from: Interviewer, to: Architect, trigger: "` + longText + `"}
- {from: Interviewer, to: user}
`}, nothing)
	k.Variables = &failsOnce{k.Variables, 1}
	m := k.writes("m1", "Interviewer", longText)
	require.Equal(t, inbound.Leave, k.Handle(t.Context(), m).Do)
	k.handled(again(m))
	require.Equal(t, "Architect", k.of("m1", "handoff")["to"])
}

func TestLargeOutputOfAnAgentWithoutAToolIsStoredOutsideOfItsRecord(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	k.deliver("m1", "Critic", map[string]any{"title": longText})
	output := k.of("m1", "structured_output")
	require.Equal(t, true, output["success"])
	require.Contains(t, output["payload"], "$blob")
	require.Equal(t, output["payload"], k.of("m1", events.KindText)["structured_output"])
}
