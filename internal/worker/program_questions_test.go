package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

const askingProgram = `
agents: {Assistant: {}, Lead: {}}
tools:
- {name: run_plan, kind: plan, agent: Assistant, approve: true}
- {name: ask_all, kind: orchestrate, agent: Lead, uses: [look, sure]}
- {name: look, kind: go, auto: false, effect: none, output: {type: object, properties: {id: {type: string}}}}
- {name: sure, kind: go, auto: false, effect: replay, output: {type: object}}
`

// programs starts a worker whose workflow has programs with a step that asks.
func programs(t *testing.T, s *oneturntest.Server, timeout time.Duration) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "Trip/oneturn.yaml", askingProgram)
	look := func(context.Context, struct{}) (map[string]any, error) { return map[string]any{"id": "x"}, nil }
	sure := func(ctx context.Context, _ struct{}) (map[string]any, error) {
		ok, err := tool.Ask[bool](ctx, tool.Question{Name: "sure", Payload: map[string]any{"title": "Sure?"}, Timeout: timeout})
		return map[string]any{"ok": ok}, err
	}
	start(t, s, oneturn.Config{Workflows: dir, ParkImmediately: true, Tools: []oneturn.Tool{
		oneturn.NewTool("look", look, oneturn.ToolOptions{Effect: oneturn.ReadOnly}), oneturn.NewTool("sure", sure, oneturn.ToolOptions{Effect: oneturn.Replay}),
	}})
}

func planOf(turn string, tools ...string) *oneturn.Turn {
	calls := []any{}
	for _, name := range tools {
		calls = append(calls, map[string]any{"tool_name": name})
	}
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat 1", Turn: turn}, Workflow: "Trip", Agent: "Assistant",
		Data: map[string]any{"type": "tool_calls", "calls": calls},
	}
}

func groupOf(turn string, agents ...string) *oneturn.Turn {
	steps := []any{}
	for _, name := range agents {
		steps = append(steps, map[string]any{"agent_id": name})
	}
	return &oneturn.Turn{
		TurnID: oneturn.TurnID{App: "app", Chat: "chat 1", Turn: turn}, Workflow: "Trip", Agent: "Lead",
		Data: map[string]any{"plan": map[string]any{"steps": []any{map[string]any{"id": "fan", "parallel": map[string]any{"steps": steps}}}}},
	}
}

func TestWaitReportsTheQuestionsOfStepsAndEndsWithTheTurnOnly(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"", "r"} {
		t.Run(run, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			programs(t, s, time.Hour)
			nc := s.Connect()
			var c *oneturn.Client
			var asked []string
			onQuestion := func(q *api.Question) {
				asked = append(asked, q.ToolCallID)
				id := oneturn.QuestionID{App: "app", Chat: "chat 1", Run: run, ToolCallID: q.ToolCallID}
				found, err := c.Question(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, api.Open, found.State)
				require.NotEmpty(t, found.Schema)
				value := any(true)
				if q.Component == "PlanApproval" {
					require.Contains(t, string(q.Payload), `"tool_name":"sure"`)
					value = map[string]any{"approved": true}
				}
				r, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: id, Value: value})
				require.NoError(t, err)
				require.Equal(t, events.AnswerAccepted, r.Code, r.Message)
			}
			var err error
			c, err = oneturn.NewClient(nc, oneturn.ClientOptions{OnQuestion: onQuestion, WithoutMsgID: true})
			require.NoError(t, err)
			one := planOf("t1", "look", "sure", "sure")
			one.Run = run
			publish(t, c, one)
			r := await(t, c, one.TurnID)
			require.True(t, r.Success, r.Content)
			require.Equal(t, "run_plan", r.Tool)
			call := r.ToolCallID
			require.Equal(t, []string{call + "#~approve/1", call + "#1/sure", call + "#2/sure"}, asked)

			steps, err := c.Steps(t.Context(), one.TurnID)
			require.NoError(t, err)
			require.Len(t, steps, 3)
			for i, tool := range []string{"look", "sure", "sure"} {
				step := steps[i]
				require.NotZero(t, step.CalledAt)
				require.False(t, step.EndedAt.Before(step.CalledAt))
				require.Equal(t, api.Step{
					Call: strconv.Itoa(i), ToolCallID: fmt.Sprintf("%s#%d", call, i), Tool: tool, Depth: 1, Effect: step.Effect, State: api.StepEnded, Success: true,
					Attempts: 1, DurationMS: step.DurationMS, CalledAt: step.CalledAt, EndedAt: step.EndedAt,
				}, step)
			}
			require.Equal(t, "replay", steps[1].Effect)
			q, err := c.Question(t.Context(), oneturn.QuestionID{App: "app", Chat: "chat 1", ToolCallID: call + "#2/sure"})
			require.NoError(t, err)
			require.Equal(t, api.Answered, q.State)
		})
	}
}

func TestStepsOfAGroupWaitForTheirAnswersApart(t *testing.T) {
	t.Parallel()
	s := server(t)
	programs(t, s, time.Hour)
	c := client(t, s)
	one := groupOf("t1", "sure", "look", "sure")
	publish(t, c, one)
	questions(t, c, 2)
	states := func() (states []api.StepState, waits []string) {
		steps, err := c.Steps(t.Context(), one.TurnID)
		require.NoError(t, err)
		byCall := map[string]api.Step{}
		for _, step := range steps {
			byCall[step.Call] = step
		}
		for i := range 3 {
			step := byCall[fmt.Sprintf("fan[%d]", i)]
			states, waits = append(states, step.State), append(waits, step.OpenQuestions...)
		}
		return states, waits
	}
	require.Eventually(t, func() bool {
		found, _ := states()
		return found[1] == api.StepEnded
	}, 10*time.Second, 5*time.Millisecond)
	found, waits := states()
	require.Equal(t, []api.StepState{api.StepWaiting, api.StepEnded, api.StepWaiting}, found)
	require.Equal(t, []string{"t1#fan[0]/sure", "t1#fan[2]/sure"}, waits)
	replyTo(t, c, "t1#fan[2]/sure", true)
	require.Eventually(t, func() bool {
		found, waits = states()
		return found[2] == api.StepEnded
	}, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, api.StepWaiting, found[0])
	require.Equal(t, []string{"t1#fan[0]/sure"}, waits)
	replyTo(t, c, "t1#fan[0]/sure", true)
	require.True(t, await(t, c, one.TurnID).Success)
}

// replyTo answers a question of the workflow with programs, as its asker does who knows nothing but the id.
func replyTo(t *testing.T, c *oneturn.Client, id string, value any) {
	t.Helper()
	v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: "chat 1", ToolCallID: id}, Value: value})
	require.NoError(t, err)
	require.Equal(t, events.AnswerAccepted, v.Code, v.Message)
}

func TestQuestionOfAStepThatExpiresHaltsTheProgram(t *testing.T) {
	t.Parallel()
	s := server(t)
	programs(t, s, time.Second)
	c := client(t, s)
	one := groupOf("t1", "look", "sure")
	publish(t, c, one)
	r := await(t, c, one.TurnID)
	require.Equal(t, events.CodeExpired, r.Code, r.Content)
	steps, err := c.Steps(t.Context(), one.TurnID)
	require.NoError(t, err)
	codes := map[string]events.Code{}
	for _, step := range steps {
		require.Equal(t, api.StepEnded, step.State)
		require.Empty(t, step.OpenQuestions)
		codes[step.Call] = step.Code
	}
	require.Equal(t, map[string]events.Code{"fan[0]": "", "fan[1]": events.CodeExpired}, codes)
	q, err := c.Question(t.Context(), oneturn.QuestionID{App: "app", Chat: "chat 1", ToolCallID: "t1#fan[1]/sure"})
	require.NoError(t, err)
	require.Equal(t, api.Expired, q.State)
	v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: "chat 1", ToolCallID: "t1#fan[1]/sure"}, Value: true})
	require.NoError(t, err)
	require.Equal(t, events.AnswerExpired, v.Code, v.Message)
}

// A step alone cannot be cancelled: its id and the ids of its questions name its turn.
func TestCancelByTheIDOfAStepCancelsItsTurn(t *testing.T) {
	t.Parallel()
	s := server(t)
	programs(t, s, time.Hour)
	c := client(t, s)
	for run, id := range map[string]string{"": "%s#1", "r": "%s#1", "r2": "%s#1/sure", "r3": "%s#~approve/1"} {
		t.Run(run+id, func(t *testing.T) {
			t.Parallel()
			one := planOf("t"+run, "look", "sure")
			one.Run, one.Chat = run, "chat "+run
			publish(t, c, one)
			var open []api.Question
			waits := func(suffix string) api.Question {
				require.Eventually(t, func() bool {
					page, err := c.Questions(t.Context(), oneturn.QuestionFilter{App: "app", Chat: one.Chat})
					open = page.Questions
					return err == nil && len(open) == 1 && open[0].ToolCallID[len(open[0].ToolCallID)-len(suffix):] == suffix
				}, 20*time.Second, 5*time.Millisecond)
				return open[0]
			}
			q := waits("#~approve/1")
			call := q.ToolCallID[:len(q.ToolCallID)-len("#~approve/1")]
			if id != "%s#~approve/1" {
				v, err := c.Answer(t.Context(), &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: one.Chat, ToolCallID: q.ToolCallID}, Value: map[string]any{"approved": true}})
				require.NoError(t, err)
				require.Equal(t, events.AnswerAccepted, v.Code, v.Message)
				q = waits("#1/sure")
			}
			_, err := c.Cancel(t.Context(), &oneturn.Cancel{TurnID: oneturn.TurnID{App: "app", Chat: one.Chat}, Workflow: "Trip", ToolCallID: fmt.Sprintf(id, call), Reason: "enough"})
			require.NoError(t, err)
			r := await(t, c, one.TurnID)
			require.Equal(t, events.CodeCancelled, r.Code)
			require.Contains(t, r.Content, "enough")
			found, err := c.Question(t.Context(), oneturn.QuestionID{App: "app", Chat: one.Chat, ToolCallID: q.ToolCallID})
			require.NoError(t, err)
			require.Equal(t, api.Cancelled, found.State)
			page, err := c.Questions(t.Context(), oneturn.QuestionFilter{App: "app", Chat: one.Chat})
			require.NoError(t, err)
			require.Empty(t, page.Questions)
			steps, err := c.Steps(t.Context(), one.TurnID)
			require.NoError(t, err)
			for _, step := range steps {
				require.Equal(t, api.StepEnded, step.State)
				require.Equal(t, step.Call == "0", step.Success)
			}
		})
	}
}

func TestTurnOfTheRequestAPIHasTheQuestionsOfStepsAndOnlyItsOwnResponse(t *testing.T) {
	t.Parallel()
	s := server(t)
	programs(t, s, time.Hour)
	c := client(t, s)
	const asking = 8 // their records need a second page
	one := groupOf("t1", slices.Concat(slices.Repeat([]string{"look"}, 12), slices.Repeat([]string{"sure"}, asking))...)
	publish(t, c, one)
	for i := range asking {
		id := fmt.Sprintf("t1#fan[%d]/sure", 12+i)
		require.Eventually(t, func() bool {
			q, err := c.Question(t.Context(), oneturn.QuestionID{App: "app", Chat: "chat 1", ToolCallID: id})
			return err == nil && q.State == api.Open
		}, 20*time.Second, 5*time.Millisecond)
		replyTo(t, c, id, true)
	}
	require.True(t, await(t, c, one.TurnID).Success)
	nc := s.Connect()
	page := func(q api.TurnRequest) (page api.Page) {
		body, err := json.Marshal(q)
		require.NoError(t, err)
		m, err := nc.Request("oneturn.api.app.turn", body, 5*time.Second)
		require.NoError(t, err)
		require.Empty(t, m.Header.Get(micro.ErrorHeader))
		require.NoError(t, json.Unmarshal(m.Data, &page))
		return page
	}
	kinds := map[string]int{}
	last := uint64(0)
	for q, pages := (api.TurnRequest{Chat: "chat 1", Turn: "t1"}), 2; q.From > 0 || pages == 2; pages-- {
		found := page(q)
		require.Empty(t, found.Steps)
		for i := range found.Records {
			require.Greater(t, found.Records[i].Sequence, last)
			last = found.Records[i].Sequence
			kinds[found.Records[i].Kind]++
		}
		q.From = found.Next
		require.Equal(t, pages == 2, q.From > 0)
	}
	require.Equal(t, map[string]int{"tool_call": 1, "program": 1, "ask": asking, "ack": asking, "tool_response": 1}, kinds)

	first := page(api.TurnRequest{Chat: "chat 1", Turn: "t1", Steps: true})
	require.Empty(t, first.Records)
	require.Len(t, first.Steps, 16)
	rest := page(api.TurnRequest{Chat: "chat 1", Turn: "t1", Steps: true, From: first.Next})
	require.Len(t, rest.Steps, 4)
	require.Zero(t, rest.Next)
	steps, err := c.Steps(t.Context(), one.TurnID)
	require.NoError(t, err)
	require.Equal(t, append(first.Steps, rest.Steps...), steps)
	require.True(t, slices.IsSortedFunc(steps, func(a, b api.Step) int { return a.CalledAt.Compare(b.CalledAt) }))

	body, err := json.Marshal(api.TurnRequest{Chat: "chat 1", Turn: "none", Steps: true})
	require.NoError(t, err)
	m, err := nc.Request("oneturn.api.app.turn", body, 5*time.Second)
	require.NoError(t, err)
	require.JSONEq(t, `{"records":[]}`, string(m.Data))
}
