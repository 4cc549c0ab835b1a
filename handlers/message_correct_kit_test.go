package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
	"github.com/oneturn/oneturn/internal/tools/target"
	"github.com/oneturn/oneturn/subjects"
)

// correctionKit is a kit with a completions endpoint whose model corrects the outputs of its agents.
type correctionKit struct {
	*messageKit

	asked atomic.Int64
	last  atomic.Pointer[map[string]any] // body of the last request
	built atomic.Pointer[map[string]any] // arguments with which the tool of the Architect was entered last
}

// completed is a chat completion.
func completed(content, finish string) string {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"choices":[{"finish_reason":%q,"message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`, finish, text)
}

// newCorrectionKit is a kit whose endpoint answers its nth request with what reply returns.
func newCorrectionKit(t *testing.T, corrections int, more string, reply func(n int64, w io.Writer)) *correctionKit {
	t.Helper()
	k := &correctionKit{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if json.NewDecoder(r.Body).Decode(&body) != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		k.last.Store(&body)
		reply(k.asked.Add(1), w)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.Start()
	t.Cleanup(server.Close)
	k.messageKit = newMessageKit(t, map[string]string{"oneturn.yaml": fmt.Sprintf(`
agents:
  Architect: {model: Plan, completion: editor, corrections: %[2]d}
  Critic: {model: Plan, completion: editor, corrections: %[2]d}
models:
  Plan: {type: object, required: [title], properties: {title: {type: string}}}
tools:
- {name: build, kind: go, agent: Architect, effect: replay}
- {name: "agent:editor", auto: false, timeout: 20s, completion: {url: "%[1]s", model: small, allow_http: true, allow_private: [127.0.0.0/8]}}
handoffs:
- {from: Architect, to: Critic}
- {from: Critic, to: user}
%[3]s`, server.URL, corrections, more)}, nothing)
	inner := k.Tool
	k.Tool = func(b *bindings.Binding) (tools.Invoker, error) {
		to, ok := b.Target.(*target.Agent)
		if !ok {
			return toolFunc(func(ctx context.Context, call *tools.Call) (tools.Result, error) {
				k.built.Store(&call.Args)
				tool, err := inner(b)
				require.NoError(t, err)
				return tool.Invoke(ctx, call)
			}), nil
		}
		made := agent.New(to, agent.Options{})
		t.Cleanup(func() { require.NoError(t, made.Close(context.WithoutCancel(t.Context()))) })
		return made, nil
	}
	return k
}

// always is an endpoint that completes with one text.
func always(text string) func(int64, io.Writer) {
	return func(_ int64, w io.Writer) { _, _ = io.WriteString(w, completed(text, "stop")) }
}

// record returns the data of a public record of correction n of a message.
func (k *correctionKit) record(message string, n int, kind string) map[string]any {
	k.t.Helper()
	return k.event(subjects.MessageKey("app", "chat", "", message).WithCall(fmt.Sprintf("c%d", n)).Public(kind))
}

func usage(calls int) map[string]any {
	number := func(n int) json.Number { return json.Number(strconv.Itoa(n)) }
	return map[string]any{"calls": number(calls), "prompt_tokens": number(10 * calls), "completion_tokens": number(5 * calls)}
}
