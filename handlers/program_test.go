package handlers_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

const twoCalls = `{"type": "tool_calls", "calls": [
	{"tool_name": "one", "arguments": {"id": "x"}}, {"tool_name": "two", "arguments": {"id": "$0.output.id"}}]}`

func TestPlanRunsItsCallsInOrderWithTwoRecordsEach(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", twoCalls, 1)).Do)
	r := k.response()
	require.Equal(t, events.StatusOK, r.Status, r.Content)
	require.True(t, r.Success)
	require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())
	require.Equal(t, []string{
		"e 0.tool_call", "e 0.program", "e s_0.tool_call", "e s_0.tool_response", "e s_1.tool_call", "e s_1.tool_response", "e 0.tool_response",
	}, k.names())
	payload, ok := r.Payload.(map[string]any)
	require.True(t, ok)
	require.Equal(t, "success", payload["status"])
}

func TestCallThatFailsHaltsThePlan(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{}, errors.New("broken")
	}, "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", twoCalls, 1)).Do)
	r := k.response()
	require.Equal(t, events.CodeToolError, r.Code)
	require.Contains(t, r.Content, "broken")
	require.Equal(t, []string{"#0"}, k.enteredCalls())
}

func TestGroupRunsItsCallsAtTheSameTime(t *testing.T) {
	t.Parallel()
	both := make(chan struct{}) // each needs the other
	meet := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		select {
		case both <- struct{}{}:
		case <-both:
		case <-ctx.Done():
		}
		return echo(ctx, call)
	}
	k := newProgramKit(t, map[string]toolFunc{"one": meet, "two": meet})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", `{"plan": {"steps": [
		{"id": "fan", "parallel": {"steps": [{"agent_id": "one", "result_key": "a"}, {"agent_id": "two", "result_key": "b"}]}}]}}`, 1)).Do)
	r := k.response()
	require.True(t, r.Success, "%v", r)
	require.Len(t, k.enteredCalls(), 2)
}

func TestFinishedCallIsNotEnteredAgainAfterItsWorkerHasStopped(t *testing.T) {
	t.Parallel()
	for effect, c := range map[string]struct {
		first, second string
		entered       []string
		code          events.Code
	}{
		"unsafe":     {"two", "one", []string{"#0", "#1"}, events.CodeInterrupted},
		"idempotent": {"one", "two", []string{"#0", "#1", "#1"}, ""},
	} {
		t.Run(effect, func(t *testing.T) {
			t.Parallel()
			second := newStalling()
			k := newProgramKit(t, map[string]toolFunc{c.first: echo, c.second: second.run})
			plan := `{"type": "tool_calls", "calls": [{"tool_name": "` + c.first + `", "arguments": {"id": "x"}}, {"tool_name": "` + c.second + `", "arguments": {"id": "$0.output.id"}}]}`
			require.NotEqual(t, inbound.Nak, k.takenOver("A", plan, second).Do)
			require.Equal(t, c.code, k.response().Code)
			require.Equal(t, c.entered, k.enteredCalls())
		})
	}
}

func TestStepThatAsksParksItsProgramAndOnlyItContinuesWithTheAnswer(t *testing.T) {
	t.Parallel()
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		a, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Value: []byte(`{"id":` + string(a.Value) + `}`)}, err
	}
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "ask": asks, "two": echo})
	plan := `{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"id": "x"}}, {"tool_name": "ask", "arguments": {"id": "$0.output.id"}},
		{"tool_name": "two", "arguments": {"id": "$1.output.id"}}]}`
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", plan, 1)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	require.Equal(t, []string{"#0", "#1"}, k.enteredCalls())
	m := k.answers(2, "turn#1/sure", "yes")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
	r := k.response()
	require.True(t, r.Success, "%v", r)
	require.Equal(t, []string{"#0", "#1", "#1", "#2"}, k.enteredCalls())
	payload, ok := r.Payload.(map[string]any)
	require.True(t, ok)
	results, ok := payload["results"].([]any)
	require.True(t, ok)
	require.Equal(t, map[string]any{"id": "yes"}, results[2].(map[string]any)["output"]) //nolint:forcetypeassert // it is a result
}

func TestCallsOfAGroupWaitForPeopleApart(t *testing.T) {
	t.Parallel()
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		a, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Value: []byte(`{"id":` + string(a.Value) + `}`)}, err
	}
	k := newProgramKit(t, map[string]toolFunc{"ask": asks, "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", `{"plan": {"steps": [
		{"id": "fan", "parallel": {"steps": [{"agent_id": "ask", "result_key": "a"}, {"agent_id": "ask", "result_key": "b"}]}},
		{"id": "last", "agent": {"agent_id": "two", "with": {"id": "{{ result.b.id }}"}}}]}}`, 1)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	m := k.answers(2, "turn#fan[1]/sure", "second")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
	require.ElementsMatch(t, []string{"#fan[0]", "#fan[1]"}, k.enteredCalls()[:2])
	require.Equal(t, []string{"#fan[1]"}, k.enteredCalls()[2:], "the other one waits on")
	require.Contains(t, k.names(), "p 0.park.2")
	m = k.answers(3, "turn#fan[0]/sure", "first")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
	require.Equal(t, []string{"#fan[1]", "#fan[0]", "#last"}, k.enteredCalls()[2:])
	require.True(t, k.response().Success)
}

func TestEventsOfStepsNameTheTurnAndTheirIDsInTheProgram(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", `{"type": "tool_calls", "calls": [{"tool_name": "run_plan", "arguments": {"plan":
		{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"id": "x"}}]}}}]}`, 1)).Do)
	require.True(t, k.response().Success)
	held, err := k.Journal.Load(t.Context(), subjects.TurnKey("app", "chat", "", "turn"))
	require.NoError(t, err)
	steps := held.Steps()
	require.Len(t, steps, 2)
	for i, want := range []events.ToolCall{{ToolCallID: "turn#0", Step: "0", Depth: 1}, {ToolCallID: "turn#0#0", Step: "0#0", Depth: 2}} {
		call, err := events.ReadCall(steps[i].Called.Data)
		require.NoError(t, err)
		response, err := events.ReadResponse(steps[i].Response.Data)
		require.NoError(t, err)
		require.Equal(t, want, events.ToolCall{ToolCallID: call.ToolCallID, Step: call.Step, Depth: call.Depth})
		require.Equal(t, want, events.ToolCall{ToolCallID: response.ToolCallID, Step: response.Step, Depth: response.Depth})
		require.Equal(t, "turn", call.Program)
		require.Equal(t, "turn", response.Program)
	}
}

func TestProgramIsTooDeepByWhereItWasCalledFrom(t *testing.T) {
	t.Parallel()
	for depth, code := range map[string]events.Code{"0": "", "2": "", "3": events.CodeGuardrail, "many": events.CodeGuardrail} {
		t.Run(depth, func(t *testing.T) {
			t.Parallel()
			seen := 0
			k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				seen = call.Depth
				return echo(ctx, call)
			}})
			m := k.plan("A", twoCalls, 1)
			m.Header = nats.Header{subjects.HeaderDepth: {depth}}
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
			require.Equal(t, code, k.response().Code)
			if code == "" {
				require.Equal(t, depth, strconv.Itoa(seen-1))
				require.Equal(t, depth, strconv.Itoa(k.response().Depth))
			} else {
				require.Equal(t, []string{"program_refusals_total depth", "programs_total plan invalid WF"}, k.series("oneturn_program"))
				require.Empty(t, k.enteredCalls())
			}
		})
	}
}

func TestDepthOfAParkedProgramIsTheOneOfItsClaim(t *testing.T) {
	t.Parallel()
	depths := []int{}
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		depths = append(depths, call.Depth)
		a, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Value: a.Value}, err
	}
	k := newProgramKit(t, map[string]toolFunc{"ask": asks})
	m := k.plan("A", `{"type": "tool_calls", "calls": [{"tool_name": "ask", "arguments": {"id": "x"}}]}`, 1)
	m.Header = nats.Header{subjects.HeaderDepth: {"2"}}
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m).Do)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.answers(2, "turn#0/sure", "yes").Message).Do)
	require.Equal(t, []int{3, 3}, depths)
}

func TestStepsOfAParkedProgramEndBeforeTheTurnThatIsCancelled(t *testing.T) {
	t.Parallel()
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{}, err
	}
	k := newProgramKit(t, map[string]toolFunc{"ask": asks})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", `{"type": "tool_calls", "calls": [{"tool_name": "ask"}]}`, 1)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	require.Equal(t, inbound.Ack, k.cancelTurn(2, events.TurnID{App: "app", Chat: "chat", Turn: "turn"}).Do)
	require.Equal(t, events.CodeCancelled, k.response().Code)
	names := k.names()
	require.Equal(t, []string{"e s_0.tool_response", "e 0.tool_response"}, names[len(names)-2:])
}
