package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/oneturntest"
)

// A worker whose programs are races: fast wins while slow runs. A person approves the programs of the tool race, also if a plan of
// the tool outer runs them; last fails until it is repaired.
type races struct {
	*oneturntest.Server

	client   *oneturn.Client
	repaired atomic.Bool
}

const (
	race      = `{"plan": {"steps": [{"id": "fan", "parallel": {"merge_strategy": "first_success", "steps": [{"agent_id": "slow"}, {"agent_id": "fast"}]}}]}}`
	raceFirst = `{"plan": {"steps": [{"id": "fan", "parallel": {"merge_strategy": "first_success", "steps": [{"agent_id": "slow"}, {"agent_id": "fast"}]}}, {"id": "end", "agent": {"agent_id": "last"}}]}}`
)

func newRaces(t *testing.T) *races {
	t.Helper()
	r := &races{Server: newServer(t)}
	dir := workflowsOf(t, map[string]string{"Race/oneturn.yaml": `
agents: {Lead: {}, Planner: {}, Free: {}}
tools:
- {name: race, kind: orchestrate, agent: Lead, uses: [fast, slow], approve: true}
- {name: outer, kind: plan, agent: Planner, uses: [race]}
- {name: free, kind: orchestrate, agent: Free, uses: [fast, slow, last]}
- {name: fast, kind: go, auto: false, effect: none, input: &any {type: object}}
- {name: slow, kind: go, auto: false, effect: none, input: *any}
- {name: last, kind: go, auto: false, effect: none, input: *any}
`})
	entered := make(chan struct{}, 8)
	fast := func(_ context.Context, in map[string]any) (map[string]any, error) {
		<-entered
		return in, nil
	}
	slow := func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	last := func(_ context.Context, in map[string]any) (map[string]any, error) {
		if r.repaired.Load() {
			return in, nil
		}
		return nil, errors.New("it is broken")
	}
	none := oneturn.ToolOptions{Effect: oneturn.ReadOnly}
	w, err := oneturn.NewWorker(r.Connect(), oneturn.Config{Workflows: dir, Tools: []oneturn.Tool{
		oneturn.NewTool("fast", fast, none), oneturn.NewTool("slow", slow, none), oneturn.NewTool("last", last, none),
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	r.client, err = oneturn.NewClient(r.Connect(), oneturn.ClientOptions{})
	require.NoError(t, err)
	return r
}

func (r *races) publish(t *testing.T, turn, agent, data string) {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal([]byte(data), &object))
	_, err := r.client.Publish(t.Context(), &oneturn.Turn{TurnID: turnID("c", "", turn), Workflow: "Race", Agent: agent, UserID: "ada", Data: object})
	require.NoError(t, err)
}

// asks publishes a program that a person has to approve, and waits for the question, whose id it returns.
func (r *races) asks(t *testing.T, turn, agent, data string) string {
	t.Helper()
	r.publish(t, turn, agent, data)
	var open questions
	require.Eventually(t, func() bool {
		open = decode[questionList](t, r.Server, "questions", "ls").Questions
		return len(open) == 1
	}, 20*time.Second, 20*time.Millisecond)
	return open[0].ToolCallID
}

// shown returns what turnctl show prints of a turn once it has ended.
func (r *races) shown(t *testing.T, turn string) (l turnReport, text string) {
	t.Helper()
	_, err := r.client.Await(t.Context(), turnID("c", "", turn))
	require.NoError(t, err)
	return decode[turnReport](t, r.Server, "show", "c", turn), normal(ok(t, r.Server, "show", "c", turn))
}

func (r *races) answer(t *testing.T, toolCallID string, value map[string]any) {
	t.Helper()
	id := turnID("c", "", "")
	_, err := r.client.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: id.App, Chat: id.Chat, ToolCallID: toolCallID}, UserID: "ada", Value: value})
	require.NoError(t, err)
}

func TestShowPrintsWhoHasDecidedAndWhoHasWon(t *testing.T) {
	t.Parallel()
	r := newRaces(t)
	asked := r.asks(t, "good", "Lead", race)
	require.Equal(t, "good#~approve/1", asked)
	ok(t, r.Server, "show", "c", asked[:len(asked)-len("/1")])
	r.answer(t, asked, map[string]any{"approved": true})
	l, text := r.shown(t, "good")
	require.Equal(t, &query.Approval{State: query.Approved, By: "ada"}, l.Steps[0].Approval)
	require.True(t, l.Steps[1].Success)
	require.Equal(t, "fan[1]", l.Steps[1].Winner)
	require.Equal(t, "stopped", l.Steps[1].Steps[0].Word)
	require.Contains(t, text, "~approve approved ")
	require.Contains(t, text, "by ada")
	require.Contains(t, text, "fan succeeded (fan[1]) group, first_success")
	require.Contains(t, text, "another was first")

	r.answer(t, r.asks(t, "bad", "Lead", race), map[string]any{"approved": false, "reason": "too dear"})
	l, text = r.shown(t, "bad")
	require.Equal(t, &query.Approval{State: query.Refused, By: "ada", Reason: "too dear"}, l.Steps[0].Approval)
	require.Equal(t, "refused", l.Steps[0].Word)
	require.Contains(t, text, "refused by ada: too dear")
}

func TestShowPrintsApprovalsThatHaveExpiredOrWereCancelled(t *testing.T) {
	t.Parallel()
	r := newRaces(t)
	r.asks(t, "late", "Lead", race)
	require.Equal(t, "waiting", decode[turnReport](t, r.Server, "show", "c", "late").Steps[0].Word)
	ok(t, r.Server, "questions", "expire", "c", "late#~approve/1")
	l, text := r.shown(t, "late")
	require.Equal(t, &query.Approval{State: query.ApprovalExpired}, l.Steps[0].Approval)
	require.Equal(t, "skipped", l.Steps[1].Word)
	require.Contains(t, text, "~approve expired\n")
	require.Equal(t, events.CodeExpired, l.Response.Code)

	r.asks(t, "off", "Lead", race)
	_, err := r.client.Cancel(t.Context(), &oneturn.Cancel{TurnID: turnID("c", "", "off"), Workflow: "Race"})
	require.NoError(t, err)
	l, text = r.shown(t, "off")
	require.Equal(t, &query.Approval{State: query.ApprovalCancelled}, l.Steps[0].Approval)
	require.Contains(t, text, "~approve cancelled\n")
	require.Equal(t, events.CodeCancelled, l.Response.Code)
}

func TestShowPrintsTheApprovalOfANestedProgramBelowItsStep(t *testing.T) {
	t.Parallel()
	r := newRaces(t)
	asked := r.asks(t, "outer", "Planner", `{"type": "tool_calls", "calls": [{"tool_name": "race", "arguments": `+race+`}]}`)
	require.Equal(t, "outer#0#~approve/1", asked)
	open := decode[turnReport](t, r.Server, "show", "c", "outer").Steps
	require.Len(t, open, 1)
	require.Equal(t, []string{"0#~approve", "0#fan"}, []string{open[0].Steps[0].Call, open[0].Steps[1].Call})
	require.Equal(t, "waiting", open[0].Steps[0].Word)
	r.answer(t, asked, map[string]any{"approved": true})
	l, text := r.shown(t, "outer")
	inner := l.Steps[0].Steps
	require.Equal(t, &query.Approval{State: query.Approved, By: "ada"}, inner[0].Approval)
	require.Equal(t, "0#fan[1]", inner[1].Winner)
	require.Contains(t, text, "0#~approve approved ")
	require.Contains(t, text, "0#fan succeeded (0#fan[1]) group, first_success")
}

func TestShowPrintsTheWinnerOfARaceThatARetryHasCopied(t *testing.T) {
	t.Parallel()
	r := newRaces(t)
	r.publish(t, "turn", "Free", raceFirst)
	l, _ := r.shown(t, "turn")
	require.Equal(t, "fan[1]", l.Steps[0].Winner)
	require.Equal(t, events.CodeToolError, l.Response.Code)
	r.repaired.Store(true)
	ok(t, r.Server, "retry", "c", "turn")
	l, text := r.shown(t, "turn~retry1")
	require.True(t, l.Response.Success)
	require.Equal(t, "fan[1]", l.Steps[0].Winner)
	require.Equal(t, "copied", l.Steps[0].Word)
	require.Contains(t, text, "fan copied (fan[1]) group, first_success\n fan[0] slow copied from turn#fan[0]; cancelled\n fan[1] fast copied from turn#fan[1]\n")
	steps, err := r.client.Steps(t.Context(), turnID("c", "", "turn~retry1"))
	require.NoError(t, err)
	require.Len(t, steps, 3)
	for i, copied := range []api.Step{
		{Call: "fan[0]", Tool: "slow", Depth: 1, State: api.StepCopied, Code: events.CodeCancelled, CopiedFrom: "turn#fan[0]"},
		{Call: "fan[1]", Tool: "fast", Depth: 1, State: api.StepCopied, Success: true, CopiedFrom: "turn#fan[1]"},
	} {
		require.Equal(t, copied, steps[i], "the same as in turnctl show")
	}
	require.Equal(t, "end", steps[2].Call)
}
