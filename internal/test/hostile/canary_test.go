package hostile_test

import (
	"context"
	"errors"
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
	"github.com/oneturn/oneturn/tool"
)

const pythonTools = `
import os, sys

def leak(text, context_variables=None):
    raise ValueError("failed on " + text)

def show(text):
    return {"status": "success", "message": "done", "env": dict(os.environ), "argv": sys.argv}
`

// TestH10H17NoValueOfATurnReachesLogsMetricsOrErrorHeaders plants a canary wherever data of a
// turn can be, lets everything go wrong, and looks through all that is not the data itself.
// What a Python tool prints goes to the log on purpose (SECURITY.md) and is left out.
func TestH10H17NoValueOfATurnReachesLogsMetricsOrErrorHeaders(t *testing.T) {
	c := harness.NewCanaries()
	t.Setenv("ONETURN_NATS", "nats://user:"+c.Of("environment")+"@127.0.0.1:4222")
	t.Setenv("AWS_SECRET_ACCESS_KEY", c.Of("environment"))
	root := t.TempDir()
	for name, text := range map[string]string{
		"oneturn.yaml": "tools:\n- {name: leak, agent: Leaker, file: tools/t.py, function: leak}\n- {name: show, agent: Shower, file: tools/t.py, function: show}\n",
		"tools/t.py":   pythonTools,
	} {
		name = filepath.Join(root, "Echo", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	fail := func(_ context.Context, in echo) (any, error) {
		switch {
		case strings.Contains(in.Text, "retry"):
			return nil, tool.Retryable(errors.New("failed on " + in.Text))
		case strings.Contains(in.Text, "panic"):
			panic("failed on " + in.Text)
		case strings.Contains(in.Text, "type"):
			return make(chan int), nil
		}
		return nil, &events.Error{Code: events.CodeUserError, Msg: "failed on " + in.Text, Err: errors.New(in.Text)}
	}
	l := newLabOf(t, oneturn.Config{Workflows: root, Tools: []oneturn.Tool{
		echoTool(), oneturn.NewTool("fail", fail, oneturn.ToolOptions{Workflow: "Echo", Agent: "Failer", Model: "Echo", MaxAttempts: 2}),
	}})
	live, err := l.nc.SubscribeSync("oneturn.live.>")
	require.NoError(t, err)
	header := nats.Header{"Authorization": {"Bearer " + c.Of("header")}, "traceparent": {c.Of("header")}}

	// Turns that end well and badly.
	for _, agent := range []string{"Echoer", "Failer", "Leaker"} {
		for _, place := range []string{"data", "retry", "panic", "type"} {
			one := turn("c", agent+place)
			one.Agent, one.Model = agent, "Echo"
			if agent == "Leaker" {
				one.Model = ""
			}
			one.Data = map[string]any{"text": c.Of(place)}
			one.ContextVariables = map[string]any{"secret": c.Of("variable")}
			require.Equal(t, agent == "Echoer", l.ends(one).Success, agent)
		}
	}
	// A tool that shows its environment.
	one := turn("c", "shower")
	one.Agent, one.Model = "Shower", ""
	r := l.ends(one)
	require.True(t, r.Success, r.Content)
	shown, err := events.AppendJSON(nil, r.Payload)
	require.NoError(t, err)
	require.Empty(t, c.In(string(shown)), "the environment of a Python tool")
	// Data that does not fit, and a key that is used again.
	bad := turn("c", "bad")
	bad.Data = map[string]any{"text": []any{c.Of("invalid")}, c.Of("key"): c.Of("invalid")}
	bad.Workflow, bad.Agent = "Echo", "Echoer"
	r = l.ends(bad)
	require.Equal(t, events.CodeValidationFailed, r.Code)
	answer, err := events.AppendJSON(nil, r.Payload)
	require.NoError(t, err)
	require.NotContains(t, c.In(string(answer)), "invalid", "what is wrong is reported without the value")
	require.Empty(t, c.In(r.Content))
	again := turn("c", "bad")
	again.Data = map[string]any{"text": c.Of("conflict")}
	l.publish(again)
	// What is not a turn at all.
	letters := []jetstream.Msg{l.letter("turn_conflict")}
	for _, body := range []string{
		c.Of("undecodable"),
		`{"kind":"structured_output_ready","structured_data":{"text":"` + c.Of("undecodable") + `\x"}}`,
		`{"structured_data":{"` + c.Of("undecodable") + `":1,"` + c.Of("undecodable") + `":2}}`,
		`{"structured_data":{"text":` + "\"\xff" + c.Of("undecodable") + `"}}`,
		`{"agent":["` + c.Of("undecodable") + `"],"auto_tool_mode":true}`,
		`{"timestamp":"` + c.Of("undecodable") + `","type":"chat.structured_output_ready","data":{"auto_tool_mode":true}}`,
		`{"context":"` + c.Of("undecodable") + `","auto_tool_mode":true}`,
	} {
		l.send("c", header, []byte(body))
		letters = append(letters, l.letter("undecodable"))
	}
	_, err = l.client.Cancel(t.Context(), &oneturn.Cancel{TurnID: turn("c", "gone").TurnID, Workflow: "Echo", Reason: c.Of("reason")})
	require.NoError(t, err)
	l.await(turn("c", "gone").TurnID)
	l.ask("oneturn.api.app.turn", `{"chat_id":"`+c.Of("request"))
	l.drained()

	for _, m := range letters {
		text := m.Headers().Get(deadletter.HeaderError)
		require.False(t, len(c.In(text)) > 0 && m.Headers().Get(deadletter.HeaderReason) == "turn_conflict", text)
		require.Empty(t, c.In(withoutKeys(text)), "header %s", deadletter.HeaderError)
	}
	m, err := live.NextMsg(5 * time.Second)
	require.NoError(t, err)
	require.Empty(t, c.In(string(m.Data)), "%s", m.Data)
	facts, err := oneturntest.Collect(t.Context(), l.nc, l.space, "")
	require.NoError(t, err)
	require.Greater(t, len(facts.Journal), 10, "the headers of records were looked at")
	facts.Dead = nil // looked at above: the way to a fault is made of keys
	require.Empty(t, c.Check(facts, map[string]string{"log": l.log.String(), "metrics": l.metrics()}))
	require.Greater(t, strings.Count(l.log.String(), "\n"), 20, "the log was looked at")
}

// withoutKeys cuts the way to a fault out of the message of a syntax error: it is made of keys.
func withoutKeys(text string) string {
	before, rest, ok := strings.Cut(text, `, "`)
	if !ok {
		return text
	}
	_, after, _ := strings.Cut(rest, `": `)
	return before + after
}

// metrics returns all metrics as they are scraped.
func (l *lab) metrics() string {
	families, err := l.reg.Gather()
	require.NoError(l, err)
	var b strings.Builder
	for _, family := range families {
		b.WriteString(family.String())
	}
	return b.String()
}

// TestH17NothingFromOutsideMakesALineOfTheLog: neither ids nor kinds nor what a tool prints.
func TestH17NothingFromOutsideMakesALineOfTheLog(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "Echo"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(root, "Echo", "oneturn.yaml"), []byte("tools: [{name: p, agent: Echoer, file: p.py, function: p}]\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "Echo", "p.py"), []byte(
		"import sys\ndef p():\n    print('\\x1b[2Jlevel=ERROR msg=forged\\rlevel=ERROR', 'x' * 1000000, '\\u202e', flush=True)\n    sys.stderr.write('level=ERROR\\x00\\x07\\n')\n"), 0o600))
	l := newLabOf(t, oneturn.Config{Workflows: root})
	forged := "x\nlevel=ERROR msg=forged \x1b[2J"
	l.sendOn("oneturn.in.default.\x1b[2J.app.Echo.c", nil, []byte(`{"kind":"\u202e`+strings.Repeat("k", 900)+`"}`))
	l.letter("undecodable")
	l.sendOn("oneturn.in.default.\x1b[2J.app.Echo.c", nil, []byte(`{"kind":"`+strings.Repeat("k", 900)+`"}`))
	l.letter("unknown_kind")
	l.sendOn("oneturn.in.default."+subjects.Token(forged)+".app.Echo.\x1b[2J", nil, raw("c", "k", "{}"))
	l.letter("subject_mismatch")
	one := turn("c", "k")
	one.Model, one.Data = "", map[string]any{}
	require.True(t, l.ends(one).Success)
	// A line over 64 KiB is broken.
	require.Eventually(t, func() bool { return strings.Count(l.log.String(), "tool output") == 3 }, 5*time.Second, 5*time.Millisecond, l.log)
	for line := range strings.SplitSeq(strings.TrimSuffix(l.log.String(), "\n"), "\n") {
		require.True(t, strings.HasPrefix(line, "time="), "%.200q", line)
		require.LessOrEqual(t, len(line), 16<<10)
		require.False(t, strings.ContainsAny(line, "\x00\x07\x1b\r\u202e"), "%.200q", line)
	}
	l.drained()
}
