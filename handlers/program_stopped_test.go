package handlers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// nap is a tool that runs until it is stopped. It reports that it has begun, if the channel is not nil.
func nap(entered chan<- struct{}) toolFunc {
	return func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		if entered != nil {
			entered <- struct{}{}
		}
		<-ctx.Done()
		return tools.Result{}, context.Cause(ctx)
	}
}

// stepResponses are the responses of the steps of the turn, by their ids.
func (k *programKit) stepResponses() map[string]*events.ToolResponse {
	k.t.Helper()
	held, err := k.Journal.Load(k.t.Context(), subjects.TurnKey("app", "chat", "", "turn"))
	require.NoError(k.t, err)
	all := map[string]*events.ToolResponse{}
	for _, step := range held.Steps() {
		r, err := events.ReadResponse(step.Response.Data)
		require.NoError(k.t, err)
		all[r.Step] = r
	}
	return all
}

// list returns a list of the payload of the turn's response.
func (k *programKit) list(name string) []any {
	k.t.Helper()
	payload, ok := k.response().Payload.(map[string]any)
	require.True(k.t, ok)
	list, ok := payload[name].([]any)
	require.True(k.t, ok, "%v", payload)
	return list
}

const (
	race     = `{"plan": {"steps": [{"id": "race", "parallel": {"merge_strategy": "first_success", "max_concurrency": %d, "steps": [{"agent_id": "one"}, {"agent_id": "two", "with": {"id": "x"}}]}}]}}`
	fanOfOne = `{"plan": {"steps": [{"id": "fan", "parallel": {"steps": [{"agent_id": "one"}, {"agent_id": "one"}]}}]}}`
	fan      = `{"plan": {"steps": [{"id": "fan", "parallel": {"steps": [{"agent_id": "one"}, {"agent_id": "two"}]}}]}}`
)

func TestCancelledProgramStatesWhichToolsRanAndTheReason(t *testing.T) {
	t.Parallel()
	const mayHave = "its effect may or may not have happened. Reason: changed my mind"
	for name, c := range map[string]struct {
		agent, data, content string
		tools                int // that run
		steps                map[string]string
	}{
		"call of a plan": {"A", twoCalls, "The turn was cancelled while tool one ran: " + mayHave, 1, map[string]string{"0": "The turn was cancelled while tool one ran: " + mayHave}},
		"calls of a group": {"O", fan, "The turn was cancelled while tools one, two ran: their effects may or may not have happened. Reason: changed my mind", 2, map[string]string{
			"fan[0]": "The turn was cancelled while tool one ran: " + mayHave, "fan[1]": "The turn was cancelled while tool two ran: " + mayHave,
		}},
		"one tool twice": {
			"O", fanOfOne, "The turn was cancelled while tool one ran: " + mayHave, 2,
			map[string]string{"fan[1]": "The turn was cancelled while tool one ran: " + mayHave},
		},
		"call of a nested plan": {
			"A", `{"type": "tool_calls", "calls": [{"tool_name": "run_plan", "arguments": {"plan": ` + twoCalls + `}}]}`, "The turn was cancelled while tool one ran: " + mayHave, 1,
			map[string]string{"0": "The turn was cancelled while tool one ran: " + mayHave, "0#0": "The turn was cancelled while tool one ran: " + mayHave},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered := make(chan struct{}, 2)
			k := newProgramKit(t, map[string]toolFunc{"one": nap(entered), "two": nap(entered)})
			over := make(chan inbound.Disposition, 1)
			m := k.plan(c.agent, c.data, 1)
			go func() { over <- k.Handle(t.Context(), m) }()
			for range c.tools {
				<-entered
			}
			<-time.After(10 * time.Millisecond) // a duration that can be seen
			body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Reason: "changed my mind"}, time.Now())
			require.NoError(t, err)
			k.HandleCancelCopy(k.space.In("default", events.KindCancel, "app", "WF", "chat"), body)
			k.CancelSeen(subjects.TurnKey("app", "chat", "", "turn"))
			require.Equal(t, inbound.Ack, (<-over).Do)
			require.Equal(t, events.CodeCancelled, k.response().Code)
			require.Equal(t, c.content, k.response().Content)
			for id, content := range c.steps {
				r := k.stepResponses()[id]
				require.NotNil(t, r, id)
				require.Equal(t, events.CodeCancelled, r.Code)
				require.Equal(t, content, r.Content)
				require.Equal(t, 1, r.Attempts)
				require.GreaterOrEqual(t, r.DurationMS, int64(10))
			}
		})
	}
}

func TestProgramThatExceedsItsTimeStatesWhichToolRan(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": nap(nil)})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("T", twoStepsGiven, 1)).Do)
	const text = "The program took longer than 100ms while tool one ran: its effect may or may not have happened."
	require.Equal(t, events.CodeTimeout, k.response().Code)
	require.Equal(t, text, k.response().Content)
	step := k.stepResponses()["s1"]
	require.Equal(t, text, step.Content)
	require.Equal(t, 1, step.Attempts)
	require.Positive(t, step.DurationMS)
	require.Equal(t, map[string]any{"code": "timeout", "message": text}, k.list("steps")[0].(map[string]any)["error"]) //nolint:forcetypeassert // it is a step
}

const twoStepsGiven = `{"plan": {"steps": [{"id": "s1", "agent": {"agent_id": "one"}}, {"id": "s2", "agent": {"agent_id": "two"}}]}}`

func TestContentCountsTheCallsThatWereStoppedOrFailedInARace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		loser      toolFunc
		concurrent int
		content    string
	}{
		"stopped": {nil, 2, "The program has ended: 1 successful, 1 stopped because another was first."},
		"failed":  {outOfPaper, 1, "The program has ended: 1 successful, 1 failed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, first, second := make(chan struct{}, 1), c.loser, toolFunc(echo)
			if first == nil {
				first = nap(entered)
				second = func(ctx context.Context, call *tools.Call) (tools.Result, error) {
					<-entered
					return echo(ctx, call)
				}
			}
			k := newProgramKit(t, map[string]toolFunc{"one": first, "two": second})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", fmt.Sprintf(race, c.concurrent), 1)).Do)
			require.True(t, k.response().Success)
			require.Equal(t, c.content, k.response().Content)
			if name == "stopped" {
				require.Equal(t, "Another call of the group won while tool one ran: its effect may or may not have happened.", k.stepResponses()["race[0]"].Content)
			}
		})
	}
}

func TestProgramWithoutCallsNeedsNoApproval(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"answer": directAnswer, "no calls": `{"type": "tool_calls", "calls": []}`, "planned answer": askForPlan,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans := &scriptedAgent{replies: []string{directAnswer}}
			k := newProgramKit(t, map[string]toolFunc{"planner": plans.reply})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("C", data, 1)).Do)
			require.True(t, k.response().Success)
			require.NotContains(t, k.names(), "p 0.park.1")
			if name != "no calls" {
				require.Equal(t, "On weekdays.", k.response().Content)
			}
		})
	}
}

func TestProgramThatAPersonRejectsIsCancelledWithTheReason(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("C", twoCalls, 1)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	m := k.answers(2, "turn#~approve/1", map[string]any{"approved": false, "reason": "too dear"})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), m.Message).Do)
	require.Equal(t, events.CodeCancelled, k.response().Code)
	require.Equal(t, "The program was not approved: too dear", k.response().Content)
	require.Empty(t, k.enteredCalls())
}

func TestTurnThatIsCancelledWhileNoneOfItsCallsRunsDoesNotStateThatItsToolRan(t *testing.T) {
	t.Parallel()
	const before = "The turn was cancelled before a call of its program started: none ran. Reason: changed my mind"
	for agent, content := range map[string]string{
		"planner": before,
		"writer":  "The turn was cancelled after the calls of its program had ended, while the answer for the user was written. Reason: changed my mind",
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			entered := make(chan struct{}, 1)
			plans := &scriptedAgent{replies: []string{twoCalls}}
			funcs := map[string]toolFunc{"one": echo, "two": echo, "planner": plans.reply, "writer": echo}
			funcs[agent] = nap(entered)
			k := newProgramKit(t, funcs)
			over := make(chan inbound.Disposition, 1)
			m := k.plan("P", askForPlan, 1)
			go func() { over <- k.Handle(t.Context(), m) }()
			<-entered
			body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Reason: "changed my mind"}, time.Now())
			require.NoError(t, err)
			k.HandleCancelCopy(k.space.In("default", events.KindCancel, "app", "WF", "chat"), body)
			k.CancelSeen(subjects.TurnKey("app", "chat", "", "turn"))
			require.Equal(t, inbound.Ack, (<-over).Do)
			require.Equal(t, events.CodeCancelled, k.response().Code)
			require.Equal(t, content, k.response().Content)
		})
	}
}

func TestTurnThatIsCancelledWhileItWaitsForApprovalStatesThatNothingRan(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("C", twoCalls, 1)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	body, err := events.EncodeCancel(&events.Cancel{TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF"}, time.Now())
	require.NoError(t, err)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
	require.Equal(t, "The turn was cancelled before a call of its program started: none ran.", k.response().Content)
}
