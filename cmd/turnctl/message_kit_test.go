package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

const interviews = `
agents: {Interviewer: , Speaker: , Architect: {model: Plan}, Critic: {model: Plan}, Drafter: {model: Plan, completion: fixer, corrections: 2}}
models: {Plan: {type: object, required: [title], properties: {title: {type: string}, agent_message: {type: string}}}}
tools:
- {name: draw, kind: go, agent: Architect, effect: idempotent}
- {name: draft, kind: go, agent: Drafter, effect: idempotent}
- {name: "agent:fixer", auto: false, completion: {url: "MODEL/fixer", model: m, allow_http: true, allow_private: [127.0.0.0/8]}}
- {name: "agent:judge", auto: false, completion: {url: "MODEL/v1/chat/completions", model: m, allow_http: true, allow_private: [127.0.0.0/8]}}
context:
  done: {type: boolean, default: false, triggers: [{type: agent_text, agent: Interviewer, match: {equals: NEXT}, ui_hidden: true}]}
  drawn: {default: 0}
  topic: {default: none}
handoffs:
  decider: judge
  rules:
  - {from: Interviewer, to: Architect, condition: "${done} == True"}
  - {from: Interviewer, to: user}
  - {from: Architect, to: Critic, condition: "${drawn} > 1"}
  - {from: Architect, to: Ghost}
  - {from: Architect, to: user, condition: "${topic} > 1"}
  - {from: Architect, to: Interviewer}
  - {from: Critic, to: Interviewer, condition: the plan is bad}
  - {from: Critic, to: Architect}
  - {from: Architect, to: terminate, scope: pre, condition: "${drawn}"}
  - {from: Drafter, to: user}
  - {from: Speaker, to: Critic, trigger: "LONG"}
`

// longText is a text of Speaker that is stored in a blob.
var longText = strings.TrimSpace(strings.Repeat("I want a shop. ", 40_000))

// interview is a server with a worker that handles messages of the workflow of interviews, in a chat.
type interview struct {
	*testing.T
	*oneturntest.Server

	workflows string // folder
	client    *oneturn.Client
}

func newInterview(t *testing.T) *interview {
	t.Helper()
	v := &interview{T: t, Server: newServer(t), workflows: t.TempDir()}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content := `{\"holds\": false}`
		if r.URL.Path == "/fixer" {
			content = `{\"title\": \"Fixed\"}`
		}
		_, _ = w.Write([]byte(`{"choices": [{"finish_reason": "stop", "message": {"content": "` + content + `"}}]}`))
	}))
	t.Cleanup(model.Close)
	require.NoError(t, os.MkdirAll(filepath.Join(v.workflows, "Interviews"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(v.workflows, "Interviews", "oneturn.yaml"), []byte(strings.NewReplacer("MODEL", model.URL, "LONG", longText).Replace(interviews)), 0o600))
	draw := func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		before, _ := tool.Vars(ctx).Get("drawn")
		n, ok := before.(json.Number)
		if !ok {
			n = "0"
		}
		i, err := n.Int64()
		if err != nil {
			return nil, err
		}
		return map[string]any{"status": "success"}, tool.Vars(ctx).Set("drawn", i+1)
	}
	w, err := oneturn.NewWorker(v.Connect(), oneturn.Config{Name: "worker-1", Workflows: v.workflows, Tools: []oneturn.Tool{
		oneturn.NewTool("draw", draw, oneturn.ToolOptions{Effect: oneturn.Idempotent}), oneturn.NewTool("draft", draw, oneturn.ToolOptions{Effect: oneturn.Idempotent}),
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	v.client, err = oneturn.NewClient(v.Connect(), oneturn.ClientOptions{WithoutMsgID: true})
	require.NoError(t, err)
	return v
}

// publish publishes a message of an agent of the chat c and waits for its handoff.
func (v *interview) publish(id, agent string, content any) {
	v.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(v, err)
	e := &events.AgentMessage{
		TurnID: events.TurnID{App: events.DefaultApp, Chat: "c"}, ID: id, Workflow: "Interviews", Agent: agent, User: agent == events.AgentUser, Content: content,
	}
	nc := v.Connect()
	stored, err := nc.SubscribeSync(space.EventsPrefix() + "." + subjects.MessageKey(e.App, e.Chat, e.Run, e.ID).Public(events.RecordHandoff)[len("e."):])
	require.NoError(v, err)
	body, err := events.EncodeMessage(e, time.Now())
	require.NoError(v, err)
	_, err = nc.Request(space.In(subjects.DefaultPool, e.InboundKind(), e.App, e.Workflow, e.Chat), body, 10*time.Second)
	require.NoError(v, err)
	_, err = stored.NextMsg(20 * time.Second)
	require.NoError(v, err)
}

// lines returns the lines of a text between a line and the next empty one, with their blanks normal.
func lines(text, after string) string {
	_, rest, _ := strings.Cut(normal(text), "\n"+after+"\n")
	block, _, _ := strings.Cut(rest, "\n\n")
	return strings.TrimRight(block, "\n")
}
