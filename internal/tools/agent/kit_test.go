package agent_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/agent"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// asked is one request that a scripted endpoint got.
type asked struct {
	header http.Header
	body   map[string]any
}

// llm is a chat-completions endpoint whose model is a function.
type llm struct {
	*httptest.Server

	mu   sync.Mutex
	seen []asked
}

// sent is what a scripted model answers: a completion, or a failure of the endpoint.
type sent struct {
	content, refusal, finish string
	status                   int    // 0 is 200
	message                  string // of the failure
	raw                      string // instead of a completion
}

func scripted(t *testing.T, answer func(r *http.Request, a asked) sent) *llm {
	t.Helper()
	l := &llm{}
	l.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		tree, errDecode := events.Decode(data)
		body, ok := tree.(map[string]any)
		if err != nil || errDecode != nil || !ok || r.URL.Path != "/v1/chat/completions" || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		a := asked{r.Header.Clone(), body}
		l.mu.Lock()
		l.seen = append(l.seen, a)
		l.mu.Unlock()
		write(w, answer(r, a))
	}))
	l.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	l.Start()
	t.Cleanup(l.Close)
	return l
}

func write(w http.ResponseWriter, s sent) {
	w.Header().Set("Content-Type", "application/json")
	var body any = map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "small-2026",
		"choices": []any{map[string]any{
			"index": 0, "message": map[string]any{"role": "assistant", "content": s.content, "refusal": s.refusal},
			"finish_reason": s.finish,
		}},
		"usage": map[string]any{"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46},
	}
	if s.status != 0 {
		w.WriteHeader(s.status)
		body = map[string]any{"error": map[string]any{"message": s.message, "type": "invalid_request_error", "param": nil, "code": nil}}
	}
	if s.raw != "" {
		_, _ = io.WriteString(w, s.raw)
		return
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// requests are those that it got.
func (l *llm) requests() []asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]asked(nil), l.seen...)
}

func (l *llm) target() *target.Agent {
	return &target.Agent{ID: "helper", Completions: &target.Completions{
		URL: l.URL + "/v1/chat/completions", Model: "small",
		Network: target.Network{AllowHTTP: true, AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}}
}

func tool(t *testing.T, to *target.Agent, o agent.Options) *agent.Tool {
	t.Helper()
	made := agent.New(to, o)
	t.Cleanup(func() { require.NoError(t, made.Close(context.WithoutCancel(t.Context()))) })
	return made
}

func call(t *testing.T, args string) *tools.Call {
	t.Helper()
	tree, err := events.Decode([]byte(args))
	require.NoError(t, err)
	object, ok := tree.(map[string]any)
	require.True(t, ok)
	return &tools.Call{
		Turn: events.TurnID{App: "app", Chat: "chat-1", Turn: "turn-1"}, CallID: "turn-1", Workflow: "Shop", Agent: "Clerk", UserID: "ada", Name: "agent:helper",
		Args: object, IdempotencyKey: "key-1", FencingToken: 42, Epoch: 1, Attempt: 1,
	}
}

// canonical is a value tree as JSON.
func canonical(t *testing.T, v any) string {
	t.Helper()
	data, err := events.AppendJSON(nil, v)
	require.NoError(t, err)
	return string(data)
}
