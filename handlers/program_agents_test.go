package handlers_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

const (
	askForPlan   = `{"prompt": "Do one, then two."}`
	twoSteps     = `{"steps": [{"id": "s1", "agent": {"agent_id": "one", "with": {"id": "x"}, "result_key": "a"}}]}`
	refusedPlan  = `{"type": "tool_calls", "calls": [{"tool_name": "one", "arguments": {"id": "$x.output.id"}}]}`
	directAnswer = `{"type": "direct_response", "content": "On weekdays."}`
)

// scriptedAgent replies with prepared results, one a call: JSON, or an error after "!".
type scriptedAgent struct {
	replies []string
	asked   atomic.Int32
	last    atomic.Pointer[tools.Call]
}

func (a *scriptedAgent) reply(_ context.Context, call *tools.Call) (tools.Result, error) {
	n := int(a.asked.Add(1))
	a.last.Store(call)
	if n > len(a.replies) {
		return tools.Result{}, &events.Error{Code: events.CodeToolError, Msg: "asked once more than expected"}
	}
	if text, failed := strings.CutPrefix(a.replies[n-1], "!"); failed {
		return tools.Result{}, &events.Error{Code: events.CodeToolError, Msg: text}
	}
	return tools.Result{Value: json.RawMessage(a.replies[n-1])}, nil
}

func outOfPaper(context.Context, *tools.Call) (tools.Result, error) {
	return tools.Result{}, &events.Error{Code: events.CodeUserError, Msg: "out of paper"}
}

func TestPromptIsPlannedRunAndAnswered(t *testing.T) {
	t.Parallel()
	around := []string{"e 0.tool_call", "e plan.tool_call", "e plan.tool_response"}
	steps := slices.Concat(around, []string{"e 0.program", "e s_0.tool_call", "e s_0.tool_response", "e s_1.tool_call", "e s_1.tool_response", "e 0.result"})
	answer := []string{"e respond.tool_call", "e respond.tool_response", "e 0.tool_response"}
	for name, c := range map[string]struct {
		plans, answers []string
		failing        bool // the second call
		planned, wrote int32
		status         string
		code           events.Code
		content        string
		records        []string
	}{
		"tools":                             {[]string{twoCalls}, []string{`"Done."`}, false, 1, 1, "success", "", "Done.", slices.Concat(steps, answer)},
		"failure":                           {[]string{twoCalls}, []string{`"No paper."`}, true, 1, 1, "failed", events.CodeUserError, "No paper.", slices.Concat(steps, answer)},
		"direct":                            {[]string{directAnswer}, nil, false, 1, 0, "success", "", "On weekdays.", slices.Concat(around, answer[2:])},
		"invalid":                           {[]string{refusedPlan}, []string{`"No plan."`}, false, 1, 1, "invalid", events.CodeValidationFailed, "No plan.", slices.Concat(around, answer)},
		"malformed":                         {[]string{`"Sure!"`, twoCalls}, []string{`"Done."`}, false, 2, 1, "success", "", "Done.", slices.Concat(steps, answer)},
		"planner fails":                     {[]string{"!connection refused"}, nil, false, 1, 0, "failed", events.CodeToolError, `planner "planner" of tool "ask_plan" (agent "P") has failed: connection refused`, slices.Concat(around, answer[2:])},
		"no answer":                         {[]string{twoCalls}, []string{"!model is down"}, false, 1, 1, "success", events.CodeToolError, "2 calls, all successful. Do not repeat the calls: their results are in the payload, and only the answer could not be written: model is down", slices.Concat(steps, answer)},
		"no answer, and a failure":          {[]string{twoCalls}, []string{"!model is down"}, true, 1, 1, "failed", events.CodeUserError, "two: ", slices.Concat(steps, answer)},
		"no answer, and the plan was wrong": {[]string{refusedPlan}, []string{`null`}, false, 1, 1, "invalid", events.CodeValidationFailed, "Plan validation failed:", slices.Concat(around, answer)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans, answers, second := &scriptedAgent{replies: c.plans}, &scriptedAgent{replies: c.answers}, toolFunc(echo)
			if c.failing {
				second = outOfPaper
			}
			k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": second, "planner": plans.reply, "writer": answers.reply})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", askForPlan, 1)).Do)
			r := k.response()
			require.Equal(t, c.planned, plans.asked.Load(), r.Content)
			require.Equal(t, c.wrote, answers.asked.Load(), r.Content)
			require.Equal(t, c.code, r.Code, r.Content)
			require.Equal(t, c.code == "", r.Success)
			require.Contains(t, r.Content, c.content)
			payload, ok := r.Payload.(map[string]any)
			require.True(t, ok)
			require.Equal(t, c.status, payload["status"])
			require.Equal(t, c.records, k.names())
			require.Contains(t, plans.last.Load().Prompt.Messages[0].Content, "Do one, then two.")
			require.Equal(t, "turn#~plan", plans.last.Load().CallID)
		})
	}
}

func TestPromptOfAnOrchestrationIsPlannedAtMostTwice(t *testing.T) {
	t.Parallel()
	nested := `{"steps": [{"id": "s1", "agent": {"agent_id": "cp__agent_orchestrate", "with": {"prompt": "and so on"}}}]}`
	for name, c := range map[string]struct {
		plans  []string
		asked  int32
		reason any // nil for a program that ran
	}{
		"good":      {[]string{twoSteps}, 1, nil},
		"malformed": {[]string{`"not json"`, twoSteps}, 2, nil},
		"refused":   {[]string{`{"steps": []}`, `{"steps": []}`}, 2, "planner_invalid"},
		"recursion": {[]string{nested, nested}, 2, "planner_recursion"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans := &scriptedAgent{replies: c.plans}
			k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo, "planner": plans.reply})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("Q", askForPlan, 1)).Do)
			r := k.response()
			require.Equal(t, c.asked, plans.asked.Load())
			payload, ok := r.Payload.(map[string]any)
			require.True(t, ok)
			require.Equal(t, c.reason, payload["reason"], r.Content)
			require.Equal(t, c.reason == nil, r.Success, r.Content)
		})
	}
}

func TestArtifactOfAStepIsNamedInItsResponse(t *testing.T) {
	t.Parallel()
	k := newProgramKit(t, map[string]toolFunc{"two": echo, "one": func(_ context.Context, call *tools.Call) (tools.Result, error) {
		if !call.Program {
			return tools.Result{}, events.ErrBadArgs
		}
		return tools.Result{Value: json.RawMessage(`{"id": "x", "artifact_id": "a1", "artifact": {"skill_id": "draft"}}`)}, nil
	}})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("A", twoCalls, 1)).Do)
	require.True(t, k.response().Success)
	found := 0
	records, err := k.store.Scan(t.Context(), subjects.TurnKey("app", "chat", "", "turn"), nil)
	require.NoError(t, err)
	for _, r := range records {
		if response, err := events.ReadResponse(r.Data); err == nil && response.ToolCallID == "turn#0" {
			require.Equal(t, "a1", response.ArtifactID)
			require.Equal(t, "draft", response.SkillID)
			found++
		}
	}
	require.Equal(t, 1, found)
}

func TestAnswerIsWrittenByTheNextWorkerIfThisOneDrainsAfterTheCalls(t *testing.T) {
	t.Parallel()
	draining, drain := context.WithCancelCause(t.Context())
	writer := &scriptedAgent{replies: []string{`"Done."`}}
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "writer": writer.reply, "two": func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		drain(handlers.ErrDraining)
		return echo(ctx, call)
	}})
	require.Equal(t, inbound.Nak, k.Handle(draining, k.plan("P", twoCalls, 1)).Do)
	require.NotContains(t, k.names(), "e 0.tool_response")
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", twoCalls, 2)).Do)
	require.Equal(t, "Done.", k.response().Content)
}
