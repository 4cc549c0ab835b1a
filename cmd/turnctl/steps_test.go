package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/subjects"
)

// step stores the tool_call of a step of a turn that has asked, and a question of the step, and returns the id of the step.
func (a *asker) step(id oneturn.TurnID, step, question string) string {
	a.Helper()
	hold := a.holds[id]
	call := events.StepID(events.CallID(events.TurnID(id), hold.Key.Turn), step)
	of := hold.ForStep(subjects.CallOf(step), "replay")
	e := events.ToolCall{
		AppID: id.App, ChatID: id.Chat, RunID: id.Run, Turn: id.Turn, ID: call, ToolCallID: call, CallID: call, Corr: call, ToolName: "greet",
		Agent: "Greeter", WorkflowName: "Hello", InteractionType: events.InteractionAutoTool,
	}
	event, err := events.Encode(events.KindToolCall, &e, time.Now())
	require.NoError(a, err)
	_, err = a.journal.Enter(a.Context(), of, idempotency.StepCall{Event: event, Digest: "d"})
	require.NoError(a, err)
	e.ToolCallID, e.Answer = events.QuestionID(call, question), &events.AnswerTo{Subject: a.space.In("default", events.KindToolCallResponse, id.App, "Hello", id.Chat)}
	event, err = events.Encode(events.KindToolCall, &e, time.Now())
	require.NoError(a, err)
	_, err = a.journal.Ask(a.Context(), of, idempotency.Question{ID: question, Digest: "d", Event: event})
	require.NoError(a, err)
	return call
}

// end stores the response of a step.
func (a *asker) end(id oneturn.TurnID, step string) {
	a.Helper()
	hold := a.holds[id]
	event, err := events.Encode(events.KindToolResponse, &events.ToolResponse{Status: events.StatusOK, Success: true}, time.Now())
	require.NoError(a, err)
	_, err = a.journal.EndStep(a.Context(), hold.ForStep(subjects.CallOf(step), "replay"), event)
	require.NoError(a, err)
}

func TestStepsAreNotListedAsTurnsAndTheirQuestionsAreOpenUntilTheyEnd(t *testing.T) {
	t.Parallel()
	a := newAsker(t)
	id := turnID("c", "", "turn")
	a.ask(id, "sure")
	first, second := a.step(id, "0", "sure"), a.step(id, "1", "sure")
	a.end(id, "0")
	for _, open := range []string{"--open", "--open=false"} {
		l := decode[listing](t, a.Server, "ls", open)
		require.Len(t, l.Turns, 1)
		require.Equal(t, "turn", l.Turns[0].Turn)
		require.NotEqual(t, "ended", string(l.Turns[0].State))
	}
	var ids []string
	for _, q := range decode[questionList](t, a.Server, "questions", "ls").Questions {
		ids = append(ids, q.ToolCallID)
	}
	require.Equal(t, []string{"turn/sure", second + "/sure"}, ids)
	for of, state := range map[string]api.QuestionState{"turn/sure": api.Open, second + "/sure": api.Open, first + "/sure": api.Closed} {
		q := decode[shownQuestion](t, a.Server, "questions", "show", "c", of)
		require.Equal(t, of, q.ToolCallID)
		require.Equal(t, state, q.State, of)
	}
}
