package handlers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

const askSecond = `{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"id": "x"}}, {"tool_name": "ask", "arguments": {"id": "$0.output.id"}},
	{"tool_name": "two", "arguments": {"id": "$1.output.id"}}]}`

// No worker runs the program when it ends: its payload is made of what is stored.
func TestProgramThatEndsWhileItIsParkedReportsItsCalls(t *testing.T) {
	t.Parallel()
	turn := events.TurnID{App: "app", Chat: "chat", Turn: "turn"}
	for name, c := range map[string]struct {
		code         events.Code
		status, step string
		message      func(k *programKit) *inbound.Message
	}{
		"cancelled": {events.CodeCancelled, "cancelled", "cancelled", func(k *programKit) *inbound.Message {
			body, err := events.EncodeCancel(&events.Cancel{TurnID: turn, Workflow: "WF"}, time.Now())
			require.NoError(t, err)
			return k.mail(2, events.KindCancel, body).Message
		}},
		"expired": {events.CodeExpired, "failed", "interrupted", func(k *programKit) *inbound.Message {
			k.MaxTurnLife = time.Nanosecond
			body, err := events.EncodeResume(&events.Resume{TurnID: turn, Workflow: "WF"}, time.Now())
			require.NoError(t, err)
			return k.mail(2, events.KindResume, body).Message
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"one": echo, "ask": asks("sure"), "two": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", askSecond, 1)).Do)
			require.Contains(t, k.names(), "p 0.park.1")
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), c.message(k)).Do)
			require.Equal(t, c.code, k.response().Code, "%v", k.response())
			payload, ok := k.response().Payload.(map[string]any)
			require.True(t, ok)
			require.Equal(t, c.status, payload["status"], "%v", payload)
			require.Equal(t, true, payload["halted"])
			require.Equal(t, []any{"2"}, payload["skipped"])
			results := k.list("results")
			require.Len(t, results, 2)
			first, second := results[0].(map[string]any), results[1].(map[string]any) //nolint:forcetypeassert // they are results
			require.Equal(t, map[string]any{"id": "x"}, first["output"])
			require.Equal(t, map[string]any{"id": "x"}, second["arguments"])
			require.Equal(t, c.step, second["code"])
			names := k.names()
			require.Equal(t, "e 0.tool_response", names[len(names)-1])
			require.Equal(t, c.step, string(k.stepResponses()["1"].Code))
		})
	}
}

func TestProgramThatIsCancelledBeforeItIsStoredReportsNoCalls(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 1)
	k := newProgramKit(t, map[string]toolFunc{"planner": func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return tools.Result{}, context.Cause(ctx)
	}})
	held, lose := context.WithCancel(t.Context())
	lost := k.plan("P", `{"prompt": "Do it."}`, 1)
	lost.Held = held
	over := make(chan inbound.Disposition, 1)
	go func() { over <- k.Handle(held, lost) }()
	<-entered
	body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
	require.NoError(t, err)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", `{"prompt": "Do it."}`, 2)).Do)
	lose()
	<-over
	payload, ok := k.response().Payload.(map[string]any)
	require.True(t, ok)
	require.Equal(t, "cancelled", payload["status"], "%v", payload)
	require.Empty(t, payload["results"])
}
