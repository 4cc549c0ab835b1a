package hostile_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/api"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/test/harness"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/provision"
	"github.com/oneturn/oneturn/tool"
)

const secretManifest = `tools:
- {name: py_ok, agent: PyOK, file: tools/t.py, function: py_ok, effect: replay}
- {name: py_fail, agent: PyFail, file: tools/t.py, function: py_fail, effect: replay}
`

// secretTools write the secret wherever a tool can write something.
const secretTools = `
import base64, json, sys, threading
import oneturn

async def talk(context_variables):
    answer = await oneturn.ask("APIKey", {"fields": [{"name": "service"}, {"name": "key", "maskInput": True}]}, name="key",
                               schema={"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]})
    key = answer["key"]
    print("the key is", key, json.dumps(answer), base64.b64encode(("user:" + key).encode()).decode())
    print(key, file=sys.stderr)
    thread = threading.Thread(target=print, args=("a thread has " + key,))
    thread.start(); thread.join()
    context_variables.set("api_key", key)
    context_variables.set("header", {"Authorization": "Basic " + base64.b64encode(("user:" + key).encode()).decode()})
    await oneturn.progress(50, "log in with " + key)
    await oneturn.show("Card", {"used": key})
    token = await oneturn.step("login", lambda: {"token": "token of " + key})
    assert token["token"].endswith("-end"), token
    await oneturn.ask("Sure", {"question": "use " + key + "?"}, name="sure")
    return key

async def py_ok(text, context_variables=None):
    key = await talk(context_variables)
    return {"status": "success", "message": "used " + key, "key": key, key: [key.encode().hex()], "url": "https://x/?k=" + key}

async def py_fail(text, context_variables=None):
    key = await talk(context_variables)
    raise ValueError("401 for " + key)
`

type typed struct {
	Key string `json:"key"`
}

// goTalk is talk in Go.
func goTalk(ctx context.Context) (string, error) {
	answer, err := tool.Ask[typed](ctx, tool.Question{Name: "key", Tool: "APIKey", Payload: map[string]any{"label": "API key"}, Secret: true})
	if err != nil {
		return "", err
	}
	err = errors.Join(tool.Vars(ctx).Set("go_key", answer.Key), tool.Progress(ctx, 50, "log in with "+answer.Key))
	_, errShow := tool.Show(ctx, tool.Surface{Tool: "Card", Payload: map[string]any{"used": answer.Key}})
	token, errStep := login(ctx, answer.Key)
	if err = errors.Join(err, errShow, errStep); err != nil {
		return "", err
	}
	if !strings.HasSuffix(token, "-end") {
		return "", fmt.Errorf("the step returned %d bytes that it has not stored", len(token))
	}
	_, err = tool.Ask[bool](ctx, tool.Question{Name: "sure", Tool: "Sure", Payload: map[string]any{"question": "use " + answer.Key + "?"}})
	return answer.Key, err
}

func login(ctx context.Context, key string) (string, error) {
	return tool.Step(ctx, "login", func(context.Context) (string, error) { return "token of " + key, nil })
}

func goOK(ctx context.Context, _ echo) (map[string]any, error) {
	key, err := goTalk(ctx)
	return map[string]any{"message": "used " + key, "key": key, key: base64.StdEncoding.EncodeToString([]byte("u:" + key))}, err
}

func goFail(ctx context.Context, in echo) (map[string]any, error) {
	key, err := goTalk(ctx)
	if err == nil && in.Text == "panic" {
		panic("panic with " + key)
	}
	return nil, errors.Join(err, &events.Error{Code: events.CodeUserError, Msg: "401 for " + key})
}

// shift is a worker that can die.
type shift struct {
	nc   *nats.Conn
	stop context.CancelFunc
	done chan error
}

// kill cuts the worker off, whatever it does.
func (s *shift) kill() {
	s.nc.Close()
	s.stop()
	<-s.done
}

func (l *lab) shift(s *oneturntest.Server, c oneturn.Config) *shift {
	l.Helper()
	c.Logger = slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l.reg = prometheus.NewRegistry()
	c.NoBindingGrace, c.Registry = true, l.reg
	nc := s.Connect()
	w, err := oneturn.NewWorker(nc, c)
	require.NoError(l, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	one := &shift{nc: nc, stop: cancel, done: make(chan error, 1)}
	go func() { one.done <- w.Run(ctx) }()
	require.Eventually(l, func() bool { return w.Ready() == nil }, 10*time.Second, 2*time.Millisecond)
	return one
}

// asked waits for the question of a chat.
func (l *lab) asked(chat, name string) api.Question {
	l.Helper()
	var found api.Question
	require.Eventually(l, func() bool {
		ctx, cancel := context.WithTimeout(l.Context(), time.Second)
		defer cancel()
		waits, err := l.client.Questions(ctx, oneturn.QuestionFilter{App: "app", Chat: chat})
		if err != nil {
			return false
		}
		for _, w := range waits.Questions {
			if strings.HasSuffix(w.ToolCallID, "/"+name) {
				found = w
				return true
			}
		}
		return false
	}, 30*time.Second, 20*time.Millisecond, "%s was not asked in %s: %s", name, chat, l.log)
	return found
}

func (l *lab) answers(w api.Question, value any) events.AnswerResult {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 20*time.Second)
	defer cancel()
	v, err := l.client.Answer(ctx, &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: w.Chat, ToolCallID: w.ToolCallID}, Workflow: w.Workflow, UserID: w.User, Value: value})
	require.NoError(l, err)
	return *v
}

// dump is all that a stream holds, headers included.
func (l *lab) dump(stream string) string {
	l.Helper()
	s, err := l.js.Stream(l.Context(), stream)
	require.NoError(l, err)
	var b strings.Builder
	for seq := max(s.CachedInfo().State.FirstSeq, 1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(l.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		require.NoError(l, err)
		fmt.Fprintf(&b, "%s %v %s\n", m.Subject, m.Header, m.Data)
	}
	return b.String()
}

// TestH22SecretAnswerIsNowhereOnceItIsHandled asks people for secrets in tools of both languages
// that write them wherever they can, parks, resumes, refuses wrong answers, lets the worker die in
// between, and looks for the secret in all that is left: streams, logs, metrics, events, files.
func TestH22SecretAnswerIsNowhereOnceItIsHandled(t *testing.T) {
	t.Parallel()
	c, root, store := harness.NewCanaries(), t.TempDir(), filepath.Join(t.TempDir(), "store")
	for name, text := range map[string]string{"oneturn.yaml": secretManifest, "tools/t.py": secretTools} {
		name = filepath.Join(root, "Secret", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o750))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	keys, err := secrets.LoadOrMake(filepath.Join(t.TempDir(), "secret-keys"))
	require.NoError(t, err)
	server := oneturntest.NewServer(t, func(o *embedded.Options) { o.Store = store })
	server.Provision(func(o *provision.Options) { o.AckWait = 2 * time.Second })
	l := newClientLab(t, server)
	config := oneturn.Config{Workflows: root, SecretKeys: keys, ParkImmediately: true, SoftStop: time.Millisecond, Tools: []oneturn.Tool{
		oneturn.NewTool("go_ok", goOK, oneturn.ToolOptions{Workflow: "Secret", Agent: "GoOK", Model: "Echo", Effect: oneturn.Replay}),
		oneturn.NewTool("go_fail", goFail, oneturn.ToolOptions{Workflow: "Secret", Agent: "GoFail", Model: "Echo", Effect: oneturn.Replay}),
		oneturn.NewTool("go_panic", goFail, oneturn.ToolOptions{Workflow: "Secret", Agent: "GoPanic", Model: "Echo", Effect: oneturn.Replay}),
	}}
	var seen harness.Output
	_, err = l.nc.Subscribe("oneturn.events.>", func(m *nats.Msg) { fmt.Fprintf(&seen, "%s %v %s\n", m.Subject, m.Header, m.Data) })
	require.NoError(t, err)
	_, err = l.nc.Subscribe("oneturn.live.>", func(m *nats.Msg) { fmt.Fprintf(&seen, "%s %v %s\n", m.Subject, m.Header, m.Data) })
	require.NoError(t, err)

	// A message that stays keeps the server from dropping the file that the answers were in.
	l.sendOn(l.space.In("nobody", events.KindStructuredOutputReady, "app", "Secret", "c"), nil, []byte(strings.Repeat("-", 100_000)))

	agents := []string{"GoOK", "GoFail", "GoPanic", "PyOK", "PyFail"}
	first := l.shift(server, config)
	for _, agent := range agents {
		one := turn(agent, "t")
		one.Workflow, one.Agent, one.Data = "Secret", agent, map[string]any{"text": strings.ToLower(strings.TrimPrefix(agent, "Go"))}
		if strings.HasPrefix(agent, "Py") {
			one.Model = ""
		}
		l.publish(one)
	}
	var all sync.WaitGroup
	for _, agent := range agents[1:] {
		all.Go(func() {
			w := l.asked(agent, "key")
			wrong := l.answers(w, map[string]any{"key": []any{c.Of("wrong")}, c.Of("name"): c.Of("wrong")})
			require.Equal(t, events.AnswerInvalid, wrong.Code)
			require.Empty(t, c.In(fmt.Sprint(wrong)), "the verdict")
			require.Equal(t, events.AnswerAccepted, l.answers(w, map[string]any{"key": c.Of(agent)}).Code)
			l.asked(agent, "sure")
		})
	}
	all.Wait()
	late := l.asked(agents[0], "key")
	first.kill()

	// No worker is there: the answer waits in the stream, the one place where it may be.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	_, err = l.client.Answer(ctx, &oneturn.Answer{QuestionID: oneturn.QuestionID{App: "app", Chat: late.Chat, ToolCallID: late.ToolCallID}, Workflow: late.Workflow, Value: map[string]any{"key": c.Of(agents[0])}})
	cancel()
	require.Error(t, err)
	require.Eventually(t, func() bool {
		found, err := c.Files(store)
		return err == nil && len(found) > 0 && strings.Contains(found[0], l.space.InStream())
	}, 10*time.Second, 10*time.Millisecond, "the answer is not looked for where it is")

	second := l.shift(server, config)
	for _, agent := range agents {
		all.Go(func() {
			require.Equal(t, events.AnswerAccepted, l.answers(l.asked(agent, "sure"), true).Code)
			r := l.await(oneturn.TurnID{App: "app", Chat: agent, Turn: "t"})
			require.Equal(t, strings.HasSuffix(agent, "OK"), r.Success, "%s: %s", agent, r.Content)
			require.Contains(t, r.Content, redact.Replacement, agent)
		})
	}
	all.Wait()
	again, other := l.answers(late, map[string]any{"key": c.Of(agents[0])}), l.answers(late, map[string]any{"key": "a guess"})
	require.Equal(t, events.AnswerConflict, again.Code, "the fact stands")
	require.Equal(t, again, other, "the result reveals to a client that tries values which one it is")
	in, err := l.js.Stream(t.Context(), l.space.InStream())
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := in.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	}, 10*time.Second, 5*time.Millisecond, "messages are left in the inbound stream")
	require.Eventually(t, func() bool { return !strings.Contains(l.dump(l.space.TurnsStream()), "Oneturn-Secret:[sealed]") }, 10*time.Second, 20*time.Millisecond,
		"sealed data is left: %s", l.log)
	require.NoError(t, l.nc.Flush())

	texts := map[string]string{"log": l.log.String(), "metrics": l.metrics(), "events": seen.String()}
	for _, stream := range []string{l.space.TurnsStream(), l.space.InStream(), l.space.TimersStream(), l.space.DeadStream(), "KV_" + l.space.ContextBucket()} {
		texts[stream] = l.dump(stream)
	}
	for name, text := range texts {
		require.False(t, c.Within([]byte(text)), "%s holds a secret: %s", name, text)
	}
	require.GreaterOrEqual(t, strings.Count(texts["log"], "the key is "+redact.Replacement), 2, "what tools print was looked at: %s", texts["log"])
	require.Contains(t, texts["log"], "a thread has "+redact.Replacement)
	require.Contains(t, texts["events"], "log in with "+redact.Replacement)
	require.Contains(t, texts["events"], "use "+redact.Replacement+"?")
	require.Contains(t, texts["KV_"+l.space.ContextBucket()], redact.Replacement)
	second.stop()
	require.NoError(t, <-second.done)
	require.NoError(t, server.Stop())
	found, err := c.Files(store)
	require.NoError(t, err)
	require.Empty(t, found, "files of the server hold a secret")
}
