package handlers_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

// working is a tool that works for a while.
func working(ctx context.Context, call *tools.Call) (tools.Result, error) {
	select {
	case <-time.After(30 * time.Millisecond):
	case <-ctx.Done():
	}
	return echo(ctx, call)
}

// requireDuration requires that the response of the turn has the time in which its calls worked, as its payload does.
func (k *programKit) requireDuration(least int64) {
	k.t.Helper()
	var sum int64
	for _, step := range k.stepResponses() {
		sum += step.DurationMS
	}
	payload, ok := k.response().Payload.(map[string]any)
	require.True(k.t, ok)
	require.Equal(k.t, sum, k.response().DurationMS)
	require.Equal(k.t, strconv.FormatInt(sum, 10), fmt.Sprint(payload["total_duration_ms"]))
	require.GreaterOrEqual(k.t, sum, least)
}

func TestDurationOfAProgramCountsTheCallsBeforeAPark(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": working, "ask": asks("sure"), "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", askSecond, 1)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.answers(2, "turn#1/sure", "yes").Message).Do)
	k.requireDuration(30)
}

func TestDurationOfAProgramCountsTheCallsOfAnEarlierOwner(t *testing.T) {
	t.Parallel()
	in, dies := make(chan struct{}, 1), make(chan struct{})
	first := true
	k := newProgramKit(t, map[string]toolFunc{"one": working, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		if first {
			first = false
			in <- struct{}{}
			<-dies
		}
		return echo(ctx, call)
	}})
	held, lose := context.WithCancel(t.Context())
	lost := k.plan("A", twoCalls, 1)
	lost.Held = held
	over := make(chan inbound.Disposition, 1)
	go func() { over <- k.Handle(t.Context(), lost) }()
	<-in
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", twoCalls, 2)).Do)
	lose()
	close(dies)
	<-over
	k.requireDuration(30)
}

func TestDurationOfAProgramThatEndsWhileItIsParkedIsTheOneOfItsPayload(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": working, "ask": asks("sure"), "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", askSecond, 1)).Do)
	body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
	require.NoError(t, err)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
	k.requireDuration(30)
}

func TestDurationOfAProgramCountsTheCallsOfANestedOne(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": working, "two": echo})
	nested := `{"type": "tool_calls", "calls": [{"tool_name": "run_plan", "arguments": {"plan": {"type": "tool_calls", "calls": [
		{"tool_name": "one", "arguments": {"id": "x"}}]}}}]}`
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", nested, 1)).Do)
	require.True(t, k.response().Success, "%v", k.response())
	steps := k.stepResponses()
	require.GreaterOrEqual(t, steps["0#0"].DurationMS, int64(30))
	require.Equal(t, steps["0#0"].DurationMS, steps["0"].DurationMS)
	require.Equal(t, steps["0"].DurationMS, k.response().DurationMS)
}
