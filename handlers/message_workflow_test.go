package handlers_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// resumes is the resume of a message by a sweep.
func (k *messageKit) resumes(id string) *inbound.Message {
	k.t.Helper()
	m := k.writes(id, "A", "")
	body, err := events.EncodeResume(&events.Resume{
		TurnID: events.TurnID{App: "app", Chat: "chat"}, Workflow: "WF", Key: subjects.MessageKey("app", "chat", "", id).String(), Message: true,
	}, m.Stored)
	require.NoError(k.t, err)
	m.Subject, m.Data = k.space.In("default", events.KindResume, "app", "WF", "chat"), body
	return m
}

func TestMessageIsLeftToAWorkerThatHasItsWorkflow(t *testing.T) {
	t.Parallel()
	for _, resumed := range []bool{false, true} {
		k := newMessageKit(t, withHandoffs(), nothing)
		m := k.writes("m1", "Interviewer", "NEXT")
		k.diesBefore("context_update", m)
		without, _ := k.bounded(k.without)
		next := again(m)
		if resumed {
			next = k.resumes("m1")
		}
		next.Stored = next.Stored.Add(-k.BindingGrace * 2)
		require.Equal(t, inbound.Nak, without.Handle(t.Context(), next).Do)
		require.Equal(t, []string{"text"}, k.kinds("m1"))
		k.handled(again(next))
		require.Equal(t, "Architect", k.of("m1", "handoff")["to"])
		require.Equal(t, inbound.Ack, without.Handle(t.Context(), again(next)).Do, "nothing is left to do")
	}
}

func TestTurnOfAMessageIsLeftToAWorkerThatHasItsWorkflow(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	m := k.writes("m1", "Architect", `{"title":"Shop"}`)
	k.diesBefore("tool_call", m)
	without, _ := k.bounded(k.without)
	m.Stored = m.Stored.Add(-k.BindingGrace * 2)
	require.Equal(t, inbound.Nak, without.Handle(t.Context(), again(m)).Do)
	require.Nil(t, k.responseOf("m1"))
	k.handled(again(m))
	require.Equal(t, true, k.responseOf("m1")["success"])
	require.Equal(t, inbound.Ack, without.Handle(t.Context(), again(m)).Do, "nothing is left to do")
}

func TestHandoffIsLeftToAWorkerThatHasTheWorkflowOfTheTurn(t *testing.T) {
	t.Parallel()
	var set atomic.Pointer[bindings.Set]
	var other handlers.Config
	k := newMessageKit(t, withHandoffs(), func(context.Context, *tools.Call) (tools.Result, error) {
		set.Store(other.Bindings()) // the workflow is removed while the tool runs
		return tools.Result{Value: json.RawMessage(`{}`), Set: map[string]any{"built": true}}, nil
	})
	k.without(&other)
	known := k.Bindings()
	set.Store(known)
	k.Bindings = set.Load
	m := k.writes("m1", "Architect", `{"title":"Shop"}`)
	require.Equal(t, inbound.Nak, k.Handle(t.Context(), m).Do)
	require.Equal(t, true, k.responseOf("m1")["success"])
	require.Nil(t, k.of("m1", "handoff"))
	set.Store(known)
	k.handled(again(m))
	require.Equal(t, "Critic", k.of("m1", "handoff")["to"])
}

func TestOutputIsCheckedByTheManifestsThatHaveReadIt(t *testing.T) {
	t.Parallel()
	k := newMessageKit(t, map[string]string{"oneturn.yaml": messageWorkflow}, nothing)
	m := k.writes("m1", "Critic", `{"name":"Shop"}`)
	k.diesBefore("structured_output", m)
	later := newMessageKit(t, map[string]string{"oneturn.yaml": "agents: {Critic: }\n"}, nothing)
	k.Bindings = later.Bindings
	k.handled(again(m))
	require.Equal(t, "validation_failed", k.of("m1", "structured_output")["code"])
}
