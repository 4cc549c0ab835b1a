package faults_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

const poisonManifest = `
agents: {Exiter: {model: P}, Killed: {model: P}, Hungry: {model: P}, Deep: {model: P}}
models:
  P: {type: object, properties: {x: {type: string}}}
tools:
  - {name: leave, agent: Exiter, file: poison.py, effect: none}
  - {name: killed, agent: Killed, file: poison.py, effect: none}
  - {name: hungry, agent: Hungry, file: poison.py, effect: none}
  - {name: deep, agent: Deep, file: poison.py, effect: none}
`

const poisonTools = `
import os, resource, signal

def leave(x=""):
    os._exit(3)

def killed(x=""):
    os.kill(os.getpid(), signal.SIGKILL)     # as the kernel does when memory is out

def hungry(x=""):
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    return "x" * (8 << 30)

def deep(x=""):
    value = []
    for _ in range(100000):
        value = [value]
    return value
`

// F22: what no worker can read, and tools that end their process, eat all memory or panic. Each
// ends as a response or a dead letter with a reason, the worker continues, and so do the turns of others.
func TestPoisonEndsAsAResponseOrADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	root := t.TempDir()
	for name, text := range map[string]string{"oneturn.yaml": poisonManifest, "tools/poison.py": poisonTools} {
		path := filepath.Join(root, "Poison", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	panics := oneturn.NewTool("panics", func(context.Context, map[string]any) (string, error) { panic("poison") }, oneturn.ToolOptions{
		Workflow: "Poison", Agent: "Panicker", Model: "",
		Effect: "none",
	})
	w, _ := r.start(oneturn.Config{Workflows: root, Tools: []oneturn.Tool{r.tool("Work", "unsafe"), panics}})
	dead, err := r.js.OrderedConsumer(t.Context(), r.space.DeadStream(), jetstream.OrderedConsumerConfig{})
	require.NoError(t, err)
	l := r.load(50)
	r.goesOn(l, 100)
	from := time.Now()

	subject := r.space.In(subjects.DefaultPool, events.KindStructuredOutputReady, "app", "Work", "poison")
	for _, c := range []struct{ body, reason string }{
		{"", "undecodable"},
		{"nope", "undecodable"},
		{"null", "undecodable"},
		{"[]", "undecodable"},
		{`"text"`, "undecodable"},
		{"\xff\xfe", "undecodable"},
		{strings.Repeat("[", 900<<10), "undecodable"},
		{`{"kind":"structured_output_ready","auto_tool_mode":true}`, "missing_field"},
		{`{"kind":"structured_output_ready","auto_tool_mode":true,"turn_idempotency_key":7,"context":[]}`, "undecodable"},
		{`{"kind":"surprise"}`, "unknown_kind"},
	} {
		_, err := r.js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: []byte(c.body)})
		require.NoError(t, err)
		m, err := dead.Next(jetstream.FetchMaxWait(20 * time.Second))
		require.NoError(t, err, "%.40s", c.body)
		require.Equal(t, c.reason, m.Headers().Get(deadletter.HeaderReason), "%.80s: %s", c.body, m.Headers().Get(deadletter.HeaderError))
		require.NotEmpty(t, m.Headers().Get(deadletter.HeaderError))
	}
	large := turn("Work", "poison", "large", "unsafe", 0)
	large.Data = map[string]any{"millis": number(0), "pad": strings.Repeat("x", 10<<20)}
	_, err = r.client.Publish(t.Context(), large)
	require.ErrorContains(t, err, "payload", "the publisher gets an error that it is too large")

	for _, agent := range []string{"Exiter", "Killed", "Hungry", "Deep", "Panicker"} {
		one := &oneturn.Turn{
			TurnID: oneturn.TurnID{App: "app", Chat: "poison", Turn: rand.Text()}, Workflow: "Poison", Agent: agent, Model: "P", Data: map[string]any{},
		}
		if agent == "Panicker" {
			one.Model = ""
		}
		_, err := r.client.Publish(t.Context(), one)
		require.NoError(t, err)
		response := r.await(one.TurnID)
		require.False(t, response.Success, agent)
		require.Contains(t, []events.Code{events.CodeToolError, events.CodeTooLarge}, response.Code, "%s: %s", agent, response.Content)
	}
	r.goesOn(l, 50)
	to := time.Now()
	require.NoError(t, w.Ready())
	require.Zero(t, r.metric("oneturn_panics_total"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.Zero(t, l.Stop(ctx))
	r.drained()
	facts, err := oneturntest.Collect(t.Context(), r.nc, r.space, r.path)
	require.NoError(t, err)
	facts.Accepted = l.Accepted()
	require.Empty(t, harness.CheckShare(facts, from, to, bystander))
}

// writePython writes the workflow Work with a Python tool that prints a text.
func writePython(t *testing.T, root, effect, word string) {
	t.Helper()
	for name, text := range map[string]string{
		"tools/work.py": "import time\ndef work(millis):\n    open('" + filepath.Join(root, "entered") + "', 'w').close()\n    time.sleep(millis / 1000)\n    return '" + word + "'\n",
		"oneturn.yaml": "agents: {Agent_any: {model: Work}}\nmodels:\n  Work: {type: object, required: [millis], properties: {millis: {type: integer}}}\n" +
			"tools: [{name: work, agent: Agent_any, file: work.py, effect: " + effect + "}]\n",
	} {
		path := filepath.Join(root, "Work", filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}
