package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

func TestUnreadableQuestionOfAStepIsClosedUnderItsID(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	a := k.asker("turn", "")
	ids := map[string]string{subjects.StepCall("fan[0]"): "turn#fan[0]/1", subjects.ApproveCall: "turn#~approve/1"}
	for call := range ids {
		_, err := a.journal.Ask(t.Context(), a.hold.ForStep(call, "replay"), idempotency.Question{ID: "1", Digest: "d", Event: []byte("{}")})
		require.NoError(t, err)
	}
	body := []byte(`{"kind":"cancel","app_id":"app","chat_id":"chat","workflow_name":"WF","turn_idempotency_key":"turn"}`)
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.mail(2, events.KindCancel, body).Message).Do)
	for call, id := range ids {
		r, err := k.store.Last(t.Context(), a.key.WithCall(call).Public(events.RecordAck, "1"))
		require.NoError(t, err)
		m, err := events.Parse(r.Data)
		require.NoError(t, err)
		require.Equal(t, id, m.Data["tool_call_id"])
	}
}

// outcomes has how the questions of a turn are decided, and by the event that frontends get.
func (k *programKit) outcomes() map[string]string {
	k.t.Helper()
	held, err := k.Journal.Load(k.t.Context(), subjects.TurnKey("app", "chat", "", "turn"))
	require.NoError(k.t, err)
	all := map[string]string{}
	for _, q := range held.Questions() {
		event, status := "", ""
		if q.Ack != nil {
			m, err := events.Parse(q.Ack.Data)
			require.NoError(k.t, err)
			event, status = fmt.Sprint(m.Data["tool_call_id"]), fmt.Sprint(m.Data["status"])
		}
		all[event] = strings.TrimSpace(string(q.Outcome()) + " " + status)
	}
	return all
}

func TestQuestionThatIsOpenWhenItsStepEndsIsClosedWithTheStep(t *testing.T) {
	t.Parallel()
	var k *programKit
	open := map[string]string{}
	k = newProgramKit(t, map[string]toolFunc{"ask": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		ctx, done := context.WithTimeout(ctx, 50*time.Millisecond)
		defer done()
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return tools.Result{Value: []byte(`{}`)}, nil
	}, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		open = k.outcomes() // the turn has not ended
		return echo(ctx, call)
	}})
	k.ParkAfter = time.Hour
	plan := `{"type": "tool_calls", "calls": [{"tool_name": "ask", "arguments": {"id": "x"}}, {"tool_name": "two", "arguments": {"id": "y"}}]}`
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", plan, 1)).Do)
	require.True(t, k.response().Success, "%v", k.response())
	require.Equal(t, map[string]string{"turn#0/sure": "cancelled cancelled"}, open)
	late := k.handled(k.answers(2, "turn#0/sure", "late"))
	require.Equal(t, events.AnswerCancelled, late.Code)
}

func TestQuestionsOfTheLosersOfARaceAreClosed(t *testing.T) {
	t.Parallel()
	var k *programKit
	open := map[string]string{}
	asks := func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Value: []byte(`{"id":"won"}`)}, err
	}
	k = newProgramKit(t, map[string]toolFunc{"ask": asks, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		open = k.outcomes()
		return echo(ctx, call)
	}})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", `{"plan": {"steps": [
		{"id": "fan", "parallel": {"result_key": "first", "merge_strategy": "first_success", "steps": [{"agent_id": "ask"}, {"agent_id": "ask"}]}},
		{"id": "last", "agent": {"agent_id": "two", "with": {"id": "{{ result.first.id }}"}}}]}}`, 1)).Do)
	require.Contains(t, k.names(), "p 0.park.1")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.answers(2, "turn#fan[1]/sure", "yes").Message).Do)
	require.True(t, k.response().Success, "%v", k.response())
	require.Equal(t, map[string]string{"turn#fan[1]/sure": "answered accepted", "turn#fan[0]/sure": "cancelled cancelled"}, open)
	require.Equal(t, []string{"#fan[1]", "#last"}, k.enteredCalls()[2:])
	late := k.handled(k.answers(3, "turn#fan[0]/sure", "late"))
	require.Equal(t, events.AnswerCancelled, late.Code)
}

func TestApprovalOfAProgramThatLosesARaceIsClosed(t *testing.T) {
	t.Parallel()
	var k *programKit
	open := map[string]string{}
	k = newProgramKitOf(t, `
agents: {O: }
tools:
- {name: cp__agent_orchestrate, kind: orchestrate, agent: O}
- {name: guarded, kind: plan, auto: false, approve: true, uses: [one]}
- {name: one, kind: go, auto: false, effect: idempotent}
- {name: two, kind: go, auto: false, effect: idempotent}
`, map[string]toolFunc{"one": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		require.Eventually(k.t, func() bool { return len(k.outcomes()) > 0 }, 10*time.Second, time.Millisecond)
		return echo(ctx, call)
	}, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		open = k.outcomes() // the turn has not ended
		return echo(ctx, call)
	}})
	k.ParkAfter = time.Hour
	race := `{"parallel": {"merge_strategy": "first_success", "steps": [{"agent_id": "guarded", "with": {"plan": ` + calls(`one {}`) + `}}, {"agent_id": "one"}]}}`
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("O", `{"plan": {"steps": [`+race+`, {"agent": {"agent_id": "two"}}]}}`, 1)).Do)
	require.True(t, k.response().Success, "%v", k.response())
	require.Len(t, open, 1)
	for event, outcome := range open {
		require.Contains(t, event, "#~approve/1")
		require.Equal(t, "cancelled cancelled", outcome)
	}
}

// wavers asks something else each time that it is entered, and takes no notice of the error of its host.
func wavers() toolFunc {
	var runs atomic.Int32
	return func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		q := tools.Question{Name: "sure", Component: fmt.Sprintf("Card%d", runs.Add(1))}
		if _, refused := call.Host.Ask(ctx, q); refused == nil {
			return echo(ctx, call)
		}
		return tools.Result{Value: []byte(`{"id":"ignored"}`)}, nil
	}
}

func TestStepThatAsksSomethingElseThanBeforeFailsAndNotItsTurn(t *testing.T) {
	t.Parallel()
	const text = "was asked before with other content"
	for name, c := range map[string]struct {
		agent, data, call string
		code              events.Code
		entered           []string
	}{
		"tolerated": {"O", `{"plan": {"steps": [{"id": "a", "on_error": "continue", "agent": {"agent_id": "ask"}}, {"id": "b", "agent": {"agent_id": "two"}}]}}`, "a", "", []string{"#b"}},
		"in a group": {"O", `{"plan": {"steps": [{"id": "fan", "on_error": "continue", "parallel": {"steps": [{"agent_id": "ask"}, {"agent_id": "two"}]}},
			{"id": "b", "agent": {"agent_id": "two"}}]}}`, "fan[0]", "", []string{"#b"}},
		"halts": {"A", `{"type": "tool_calls", "calls": [{"tool_name": "ask"}, {"tool_name": "two"}]}`, "0", events.CodeToolError, nil},
		"in a nested plan": {"O", `{"plan": {"steps": [{"id": "a", "on_error": "continue", "agent": {"agent_id": "cp__agent_orchestrate", "with": {"plan":
			{"steps": [{"id": "in", "agent": {"agent_id": "ask"}}]}}}}, {"id": "b", "agent": {"agent_id": "two"}}]}}`, "a#in", "", []string{"#b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newProgramKit(t, map[string]toolFunc{"ask": wavers(), "two": echo})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan(c.agent, c.data, 1)).Do)
			require.Contains(t, k.names(), "p 0.park.1")
			before := len(k.enteredCalls())
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.answers(2, "turn#"+c.call+"/sure", "yes").Message).Do)
			step := k.stepResponses()[c.call]
			require.NotNil(t, step)
			require.Equal(t, events.CodeToolError, step.Code, "%v", step)
			require.Contains(t, step.Content, text)
			require.Equal(t, c.code, k.response().Code, "%v", k.response())
			require.Equal(t, append([]string{"#" + c.call}, c.entered...), k.enteredCalls()[before:])
			for _, outcome := range k.outcomes() {
				require.NotEqual(t, "open", outcome)
			}
		})
	}
}

// handledSoon handles a message that must not wait in memory.
func (k *programKit) handledSoon(m *inbound.Message) {
	k.t.Helper()
	done := make(chan inbound.Disposition, 1)
	go func() { done <- k.Handle(k.t.Context(), m) }()
	select {
	case d := <-done:
		require.Equal(k.t, inbound.Ack, d.Do)
	case <-time.After(20 * time.Second):
		require.Fail(k.t, "the turn waits in memory", "%v", k.names())
	}
}

func TestTurnIsParkedWhenItsStepsAndTheStepsOfANestedProgramWaitForPeople(t *testing.T) {
	t.Parallel()
	for name, nested := range map[string]string{
		"plan":      `{"agent_id": "run_plan", "with": {"plan": ` + calls(`ask {}`) + `}}`,
		"two deep":  `{"agent_id": "run_plan", "with": {"plan": ` + calls(`run_plan {"plan": `+calls(`ask {}`)+`}`) + `}}`,
		"a group":   `{"agent_id": "cp__agent_orchestrate", "with": {"plan": {"steps": [{"parallel": {"steps": [{"agent_id": "ask"}, {"agent_id": "ask"}]}}]}}}`,
		"an answer": `{"agent_id": "careful", "with": {"plan": ` + calls(`one {}`) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var k *programKit
			before := 1
			if name == "a group" {
				before = 2
			}
			k = newProgramKit(t, map[string]toolFunc{"one": echo, "ask": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				if strings.HasSuffix(call.CallID, "fan[1]") { // asks when the nested program waits already
					require.Eventually(k.t, func() bool { return strings.Count(strings.Join(k.names(), " "), ".ask.") >= before }, 10*time.Second, time.Millisecond)
				}
				_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
				return tools.Result{Value: []byte(`{"id":"x"}`)}, err
			}})
			k.ParkAfter = 200 * time.Millisecond
			group := `{"plan": {"steps": [{"id": "fan", "parallel": {"steps": [` + nested + `, {"agent_id": "ask"}]}}]}}`
			k.handledSoon(k.plan("O", group, 1))
			require.Contains(t, k.names(), "p 0.park.1")
		})
	}
}

func TestNestedProgramThatWaitsForAPersonLeavesItsPlaceInTheGroup(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"two": echo, "ask": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		_, err := call.Host.Ask(ctx, tools.Question{Name: "sure"})
		return tools.Result{Value: []byte(`{"id":"x"}`)}, err
	}})
	k.ParkAfter = 200 * time.Millisecond
	group := `{"plan": {"steps": [{"id": "fan", "parallel": {"max_concurrency": 1, "steps": [
		{"agent_id": "run_plan", "with": {"plan": ` + calls(`ask {}`) + `}}, {"agent_id": "two"}, {"agent_id": "ask"}]}}]}}`
	k.handledSoon(k.plan("O", group, 1))
	require.Contains(t, k.names(), "e "+subjects.StepCall("fan[1]")+".tool_response")
	require.Contains(t, k.names(), "p 0.park.1")
	k.handledSoon(k.answers(2, "turn#fan[2]/sure", "yes").Message)
	require.Contains(t, k.names(), "p 0.park.2")
	k.handledSoon(k.answers(3, "turn#fan[0]#0/sure", "yes").Message)
	require.True(t, k.response().Success, "%v", k.response())
}
