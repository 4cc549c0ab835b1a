package handlers_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestResponderGetsRequestPlanAndSummary(t *testing.T) {
	t.Parallel()
	given := `{"steps": [{"id": "s1", "agent": {"agent_id": "one", "with": {"id": "x"}}}]}`
	for name, c := range map[string]struct {
		agent, data, plan string
		request           any
		summary           string
	}{
		"planned":             {"P", askForPlan, twoCalls, "Do one, then two.", "1. one - SUCCESS"},
		"given":               {"P", twoCalls, twoCalls, nil, "2. two - SUCCESS"},
		"given under plan":    {"P", `{"plan": ` + twoCalls + `}`, twoCalls, nil, "2. two - SUCCESS"},
		"given orchestration": {"T", `{"plan": ` + given + `}`, given, nil, "1. one (s1) - SUCCESS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans, answers := &scriptedAgent{replies: []string{`{"plan": ` + twoCalls + `}`}}, &scriptedAgent{replies: []string{`"Done."`}}
			k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo, "planner": plans.reply, "writer": answers.reply})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan(c.agent, c.data, 1)).Do)
			require.Equal(t, "Done.", k.response().Content)
			request, ok := answers.last.Load().Args["request"].(map[string]any)
			require.True(t, ok)
			plan, err := events.Decode([]byte(c.plan))
			require.NoError(t, err)
			require.Equal(t, plan, request["plan"])
			require.Equal(t, c.request, request["request"])
			require.Contains(t, request, "request")
			require.Contains(t, request["summary"], c.summary)
		})
	}
}

func TestResponderGetsNoPlanIfNoReplyOfThePlannerCanBeRead(t *testing.T) {
	t.Parallel()
	plans, answers := &scriptedAgent{replies: []string{`"no plan"`, `"still none"`}}, &scriptedAgent{replies: []string{`"Sorry."`}}
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo, "planner": plans.reply, "writer": answers.reply})
	require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", askForPlan, 1)).Do)
	require.Equal(t, "Sorry.", k.response().Content)
	request, ok := answers.last.Load().Args["request"].(map[string]any)
	require.True(t, ok)
	require.Nil(t, request["plan"])
	require.Contains(t, request, "plan")
}

func TestAgentThatHasFailedWasEnteredOnce(t *testing.T) {
	t.Parallel()
	for failing, reply := range map[string]string{"~plan": "!down", "~respond": twoCalls} {
		plans, answers := &scriptedAgent{replies: []string{reply}}, &scriptedAgent{replies: []string{"!down"}}
		k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": echo, "planner": plans.reply, "writer": answers.reply})
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", askForPlan, 1)).Do)
		ended := k.stepResponses()[failing]
		require.NotNil(t, ended, failing)
		require.Equal(t, 1, ended.Attempts, failing)
	}
}

func TestResponderGetsThePlanThatAnEarlierOwnerWasGiven(t *testing.T) {
	t.Parallel()
	second := newStalling()
	plans, answers := &scriptedAgent{replies: []string{twoCalls}}, &scriptedAgent{replies: []string{`"Done."`}}
	k := newProgramKit(t, map[string]toolFunc{"one": echo, "two": second.run, "planner": plans.reply, "writer": answers.reply})
	k.takenOver("P", askForPlan, second)
	require.EqualValues(t, 1, plans.asked.Load())
	request, ok := answers.last.Load().Args["request"].(map[string]any)
	require.True(t, ok)
	plan, err := events.Decode([]byte(twoCalls))
	require.NoError(t, err)
	require.Equal(t, plan, request["plan"])
}

func TestProgramsThatDoNotRunAreLoggedWithoutWhatTheyContain(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ agent, data, reply string }{
		"msg=\"a program is not run":                  {"A", `{"type": "tool_calls", "calls": [{"tool_name": "CANARY"}]}`, ""},
		"reason=planner_invalid":                      {"Q", `{"prompt": "CANARY"}`, `"CANARY"`},
		"msg=\"an agent of a program has not replied": {"P", `{"prompt": "CANARY"}`, "!CANARY"},
		"msg=\"a program took longer than it may":     {"T", `{"plan": {"steps": [{"id": "s1", "agent": {"agent_id": "one", "with": {"id": "CANARY"}}}]}}`, ""},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			plans := &scriptedAgent{replies: []string{c.reply, c.reply}}
			k := newProgramKit(t, map[string]toolFunc{"one": nap(nil), "planner": plans.reply, "writer": plans.reply})
			var log bytes.Buffer
			k.Logger = slog.New(slog.NewTextHandler(&log, nil))
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan(c.agent, c.data, 1)).Do)
			require.False(t, k.response().Success)
			require.Contains(t, log.String(), want)
			require.Contains(t, log.String(), "turn=turn")
			require.NotContains(t, log.String(), "CANARY")
		})
	}
}

func TestAgentThatTakesLongerThanTheProgramIsNamed(t *testing.T) {
	t.Parallel()
	hangs := func(ctx context.Context, _ *tools.Call) (tools.Result, error) {
		<-ctx.Done()
		return tools.Result{}, ctx.Err()
	}
	for name, c := range map[string]struct {
		planner, writer toolFunc
		content, status string
	}{
		"planner":   {hangs, gives(`"done"`), `planner "planner" of tool "planned" (agent "P") has failed: the program took longer than 200ms`, "failed"},
		"responder": {gives(calls(`two {}`)), hangs, "Do not repeat the calls: their results are in the payload, and only the answer could not be written: the program took longer than 200ms", "success"},
	} {
		k := newProgramKitOf(t, `
agents: {P: }
tools:
- {name: planned, kind: plan, agent: P, planner: planner, respond: writer, uses: [two], program: {timeout: 200ms}}
- {name: planner, kind: agent, auto: false, nats: {subject: agents.planner}}
- {name: writer, kind: agent, auto: false, nats: {subject: agents.writer}}
- {name: two, kind: go, auto: false, effect: idempotent}
`, map[string]toolFunc{"planner": c.planner, "writer": c.writer, "two": echo})
		require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("P", `{"prompt": "x"}`, 1)).Do, name)
		r := k.response()
		require.Equal(t, events.CodeTimeout, r.Code, name)
		require.Contains(t, r.Content, c.content, name)
		payload, _ := r.Payload.(map[string]any)
		require.Equal(t, c.status, payload["status"], name)
	}
}

func TestResultsStayWhenTheTimeOfTheProgramIsOverBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		second  toolFunc
		code    events.Code
		content string
	}{
		"after a success": {echo, events.CodeTimeout, "The program has ended: 2 calls, all successful. Do not repeat the calls: their results are in the payload, " +
			"and only the answer could not be written: the program took longer than 1s"},
		"after a failure": {outOfPaper, events.CodeUserError, "Tool execution failed: two (s2): out of paper"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enough := strings.Replace(programWorkflow, "timeout: 100ms", "timeout: 1s", 1) // for the calls
			k := newProgramKitOf(t, enough, map[string]toolFunc{"one": echo, "two": c.second, "writer": nap(nil)})
			require.Equal(t, inbound.Ack, k.Handle(t.Context(), k.plan("T", twoStepsGiven, 1)).Do)
			require.Equal(t, c.code, k.response().Code)
			require.Equal(t, c.content, k.response().Content)
			require.Len(t, k.list("steps"), 2)
			require.Equal(t, events.CodeTimeout, k.stepResponses()["~respond"].Code)
			names := k.names()
			require.Equal(t, []string{"e respond.tool_response", "e 0.tool_response"}, names[len(names)-2:])
		})
	}
}
