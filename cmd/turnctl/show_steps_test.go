package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/cmd/internal/cli"
	"github.com/oneturn/oneturn/internal/query"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/tool"
)

const reviewManifest = `
agents: {Lead: {}}
tools:
- {name: ask_agents, kind: orchestrate, agent: Lead, uses: [facts, style, chief, sub_plan]}
- {name: sub_plan, kind: plan, auto: false, uses: [facts]}
- {name: facts, kind: go, auto: false, effect: none, input: &any {type: object}, output: *any}
- {name: style, kind: go, auto: false, effect: idempotent, input: *any}
- {name: chief, kind: go, auto: false, effect: replay, input: *any, output: *any}
`

const reviewRequest = `{"plan": {"steps": [
	{"id": "fan", "on_error": "continue", "parallel": {"steps": [{"agent_id": "facts", "with": {"text": "x"}, "result_key": "facts"}, {"agent_id": "style"}]}},
	{"id": "inner", "agent": {"agent_id": "sub_plan", "with": {"plan": {"type": "tool_calls", "calls": [{"tool_name": "facts", "arguments": {"text": "y"}}]}}}},
	{"id": "sign", "agent": {"agent_id": "chief", "with": {"facts": "{{ facts }}"}}},
	{"id": "last", "agent": {"agent_id": "facts"}}]}}`

// reviewed starts a worker with an orchestration and publishes it: its step sign asks ada.
func reviewed(t *testing.T, run string) (*oneturntest.Server, *oneturn.Client, oneturn.TurnID) {
	t.Helper()
	s := newServer(t)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "Review"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Review", "oneturn.yaml"), []byte(reviewManifest), 0o600))
	facts := func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil }
	style := func(context.Context, map[string]any) (map[string]any, error) {
		return nil, tool.UserError("No style guide.")
	}
	chief := func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		ok, err := tool.Ask[bool](ctx, tool.Question{Name: "sign"})
		return map[string]any{"signed": ok}, err
	}
	w, err := oneturn.NewWorker(s.Connect(), oneturn.Config{Name: "worker-1", Workflows: dir, ParkImmediately: true, Tools: []oneturn.Tool{
		oneturn.NewTool("facts", facts, oneturn.ToolOptions{Effect: oneturn.ReadOnly}), oneturn.NewTool("style", style, oneturn.ToolOptions{Effect: oneturn.Idempotent}),
		oneturn.NewTool("chief", chief, oneturn.ToolOptions{Effect: oneturn.Replay}),
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	client, err := oneturn.NewClient(s.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	id := turnID("c", run, "t1")
	data := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(reviewRequest), &data))
	_, err = client.Publish(t.Context(), &oneturn.Turn{TurnID: id, Workflow: "Review", Agent: "Lead", UserID: "ada", Data: data})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		code, out, _ := turnctl(t, s, "show", "c", "t1", "--run", run)
		return code == cli.OK && strings.Contains(out, "parked: ")
	}, 20*time.Second, 20*time.Millisecond)
	return s, client, id
}

func TestShowPrintsAProgramAsATree(t *testing.T) {
	t.Parallel()
	s, client, id := reviewed(t, "")
	text := ok(t, s, "show", "c", "t1")
	require.Contains(t, text, "\n    fan[0]   facts ", "calls of groups are indented")
	require.Contains(t, text, "\n    inner#0  facts ", "and so are calls of nested programs")
	_, rest, _ := strings.Cut(normal(text), "\nsteps:\n")
	steps, _, _ := strings.Cut(rest, "\n\n")
	require.Equal(t, ` step tool state effect called took attempts details
 fan partial group, collect
 fan[0] facts succeeded none N ms TOOK 1
 fan[1] style failed idempotent N ms TOOK 1 user_error: No style guide.
 inner sub_plan succeeded program N ms TOOK 1
 inner#0 facts succeeded none N ms TOOK 1
 sign chief waiting replay N ms waits for the answer to t1#sign/sign by ada
 last facts pending`, regexp.MustCompile(`\b\d+ ms`).ReplaceAllString(steps, "TOOK"))
	require.Contains(t, normal(text), "#sign ask.sign worker-1 1 ")

	l := decode[turnReport](t, s, "show", "c", "t1")
	require.Equal(t, query.Parked, l.State)
	require.Len(t, l.Steps, 4)
	require.Equal(t, "collect", l.Steps[0].Merge)
	style := l.Steps[0].Steps[1]
	require.Equal(t, "user_error", string(style.Code))
	require.Contains(t, style.Response.Content, "No style guide.")
	require.Equal(t, "worker-1", style.Owner)
	require.Equal(t, 2, l.Steps[1].Steps[0].Depth)
	require.Equal(t, []string{"fan[0]"}, l.Steps[2].Needs)
	require.Equal(t, []string{"t1#sign/sign"}, l.Steps[2].OpenQuestions)
	require.Equal(t, "pending", l.Steps[3].Word)
	require.Equal(t, []string{"partial", "succeeded", "failed"}, []string{l.Steps[0].Word, l.Steps[0].Steps[0].Word, style.Word}, "the words of the text")

	_, err := client.Cancel(t.Context(), &oneturn.Cancel{TurnID: oneturn.TurnID{App: id.App, Chat: "c"}, Workflow: "Review", ToolCallID: "t1#inner#0"})
	require.NoError(t, err)
	_, err = client.Await(t.Context(), id)
	require.NoError(t, err)
	l = decode[turnReport](t, s, "show", "c", "t1")
	require.Equal(t, "failed", l.Steps[2].Word)
	require.Equal(t, "cancelled", string(l.Steps[2].Code))
	require.Equal(t, "skipped", l.Steps[3].Word)
}

func TestShowFindsATurnByTheIDsOfItsStepsAndQuestions(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"", "r"} {
		s, _, _ := reviewed(t, run)
		call := decode[turnReport](t, s, "show", "c", "t1", "--run", run).ToolCallID
		for suffix, step := range map[string]string{"#fan[1]": "fan[1]", "#inner#0": "inner#0", "#sign/sign": "sign", "#sign": "sign"} {
			l := decode[turnReport](t, s, "show", "c", call+suffix, "--payload")
			require.Equal(t, "t1", l.Turn)
			require.Equal(t, step, l.Step)
		}
		text := ok(t, s, "show", "c", call+"#fan[0]", "--payload")
		require.Contains(t, text, "call of step fan[0]: arguments of 12 bytes\n  {\n    \"text\": \"x\"\n  }")
		require.Contains(t, text, "response of step fan[0]: ok, ")
		for suffix, want := range map[string]string{
			"#fan[2]": "has no step or question \"" + call + "#fan[2]\": turnctl show c t1 lists its steps", "#sign/other": "has no question", "x#0": "no record of turn",
		} {
			code, _, stderr := turnctl(t, s, "show", "c", call+suffix)
			require.Equal(t, cli.Failed, code)
			require.Contains(t, stderr, want)
		}
		require.Equal(t, "turn t1 of chat c is cancelled\n", ok(t, s, "questions", "cancel", "c", call+"#inner#0"))
	}
}

func TestQuestionsExpireEndsTheTimeOfAQuestionOfAStep(t *testing.T) {
	t.Parallel()
	s, client, id := reviewed(t, "r")
	open := decode[questionList](t, s, "questions", "ls").Questions
	require.Len(t, open, 1)
	code, _, stderr := turnctl(t, s, "questions", "expire", "c", strings.TrimSuffix(open[0].ToolCallID, "/sign"))
	require.Equal(t, cli.Usage, code, "a step has no time to answer")
	require.Contains(t, stderr, "use <tool_call_id of the call>/<question>")
	require.Equal(t, "question "+open[0].ToolCallID+" of chat c is expired\n", ok(t, s, "questions", "expire", "c", open[0].ToolCallID))
	r, err := client.Await(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "expired", string(r.Code))
	l := decode[turnReport](t, s, "show", "c", open[0].ToolCallID)
	require.Equal(t, "sign", l.Step)
	require.Equal(t, api.Expired, l.Questions[0].State)
	require.Equal(t, "expired", string(l.Steps[2].Code))
}

func TestShowPrintsTheLinesOfAContent(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	contentText(&text, "Hotels:\n- Roma\n  - \x1b[31m4 stars\n\nDone.\n")
	require.Equal(t, "  Hotels:\n  - Roma\n    - \\x1b[31m4 stars\n\n  Done.\n", text.String())
}
