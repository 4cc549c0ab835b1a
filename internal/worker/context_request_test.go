package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

const interviews = `
agents: {Interviewer: , Architect: {model: Plan}}
models: {Plan: {type: object}}
tools:
- {name: draw, kind: go, agent: Architect, effect: idempotent}
context:
  done: {default: false, triggers: [{type: agent_text, agent: Interviewer, match: {equals: NEXT}, ui_hidden: true}]}
  drawn: {default: 0}
  key: {source: {type: config, env_var: HOME, default: none}}
  user_id: {source: {type: runtime}}
handoffs:
- {from: Interviewer, to: Architect, condition: "${done} == True"}
- {from: Architect, to: user}
`

// drawn is a tool that counts its runs in a context variable.
func drawn(ctx context.Context, _ map[string]any) (map[string]any, error) {
	before, _ := tool.Vars(ctx).Get("drawn")
	n, err := strconv.Atoi(fmt.Sprint(before))
	if err != nil {
		return nil, err
	}
	return map[string]any{}, tool.Vars(ctx).Set("drawn", n+1)
}

// interviewer starts a worker with the workflow of interviews.
func interviewer(t *testing.T) (*oneturntest.Server, *oneturn.Client) {
	t.Helper()
	root := t.TempDir()
	writeFiles(t, filepath.Join(root, "Interviews"), map[string]string{"oneturn.yaml": interviews})
	s := server(t)
	draw := oneturn.NewTool("draw", drawn, oneturn.ToolOptions{Effect: oneturn.Idempotent})
	w := start(t, s, oneturn.Config{Workflows: root, ContextEnv: []string{"HOME"}, Tools: []oneturn.Tool{draw}})
	require.Eventually(t, func() bool { return w.Ready() == nil }, 10*time.Second, 5*time.Millisecond)
	return s, client(t, s)
}

// publishMessage publishes a message and waits for its handoff, which it returns.
func publishMessage(t *testing.T, s *oneturntest.Server, e *events.AgentMessage) *events.Handoff {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	e.App, e.Chat, e.Workflow, e.User = "acme", "c", "Interviews", e.Agent == events.AgentUser
	nc := s.Connect()
	key := subjects.MessageKey(e.App, e.Chat, e.Run, e.ID)
	stored, err := nc.SubscribeSync(space.EventsPrefix() + "." + key.String() + "." + events.RecordHandoff)
	require.NoError(t, err)
	body, err := events.EncodeMessage(e, time.Now())
	require.NoError(t, err)
	_, err = nc.Request(space.In("default", e.InboundKind(), e.App, e.Workflow, e.Chat), body, 10*time.Second)
	require.NoError(t, err)
	m, err := stored.NextMsg(20 * time.Second)
	require.NoError(t, err)
	h, err := events.ReadHandoff(m.Data)
	require.NoError(t, err)
	return h
}

func variablesOf(t *testing.T, c *api.Context) string {
	t.Helper()
	text, err := json.Marshal(c.Variables)
	require.NoError(t, err)
	return string(text)
}

func TestContextVariablesAreReadAsTheyAreNow(t *testing.T) {
	t.Parallel()
	s, c := interviewer(t)
	id := oneturn.ChatID{App: "acme", Chat: "c"}
	read := func() *api.Context {
		t.Helper()
		found, err := c.ContextVariables(t.Context(), id)
		require.NoError(t, err)
		return found
	}
	none := read()
	require.Empty(t, none.Variables)
	require.Empty(t, none.Workflow)
	require.Zero(t, none.Revision)
	named, err := c.ContextVariables(t.Context(), oneturn.ChatID{App: "acme", Chat: "c", Workflow: "Interviews"})
	require.NoError(t, err)
	require.JSONEq(t, `{"done": false, "drawn": 0, "user_id": null}`, variablesOf(t, named))
	require.Equal(t, []string{"key"}, named.Private, "a value of the environment is not returned")

	publishMessage(t, s, &events.AgentMessage{ID: "m1", Agent: "Interviewer", Content: "NEXT", UserID: "ada", TurnSequence: 1, TurnID: events.TurnID{Run: "r"}})
	now := read()
	require.Equal(t, "Interviews", now.Workflow)
	require.JSONEq(t, `{"done": true, "drawn": 0, "user_id": "ada"}`, variablesOf(t, now))
	require.Equal(t, map[string]uint64{"done": 1}, now.Set)
	require.Equal(t, []any{"Interviewer", "r", int64(1)}, []any{now.LastSpeaker, now.Run, now.TurnSequence})
	require.Len(t, now.Messages, 1)
	m := now.Messages[0]
	require.Equal(t, []any{"m1", "r", uint64(1), []string{"done"}}, []any{m.ID, m.Run, m.Sequence, m.Changed})
	require.JSONEq(t, `{"to": "Architect", "rule": 0, "reason": "condition"}`, string(m.Handoff))

	publishMessage(t, s, &events.AgentMessage{ID: "m2", Agent: "Architect", Content: map[string]any{"title": "Shop"}, TurnID: events.TurnID{Run: "r"}})
	now = read()
	require.JSONEq(t, `1`, string(now.Variables["drawn"]))
	require.NotZero(t, now.Set["drawn"])
	require.Len(t, now.Messages, 2)

	_, err = c.ContextVariables(t.Context(), oneturn.ChatID{App: "acme"})
	require.ErrorContains(t, err, "set ChatID.Chat")
	other, err := c.ContextVariables(t.Context(), oneturn.ChatID{App: "evil", Chat: "c"})
	require.NoError(t, err)
	require.Empty(t, other.Variables, "the chat belongs to another tenant")
}

func TestDamagedContextVariablesAreNotGuessed(t *testing.T) {
	t.Parallel()
	s, c := interviewer(t)
	nc := s.Connect()
	_, err := nc.RequestMsg(&nats.Msg{Subject: "$KV.ONETURN_CONTEXT." + subjects.ContextKey("acme", "c"), Data: []byte("{")}, 5*time.Second)
	require.NoError(t, err)
	_, err = c.ContextVariables(t.Context(), oneturn.ChatID{App: "acme", Chat: "c"})
	require.ErrorContains(t, err, "state_corrupt")
	require.NotContains(t, err.Error(), "ONETURN_CONTEXT", "the names of buckets are for operators")
}
