package worker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/idempotency/kvstore"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
	"github.com/oneturn/oneturn/tool"
)

// orphan is a turn as a worker leaves it that died inside the tool, and whose message is gone.
type orphan struct {
	s     *oneturntest.Server
	js    jetstream.JetStream
	space subjects.Space
	id    oneturn.TurnID
	key   subjects.Key
	event events.ToolCall
	meta  map[string]string
}

func newOrphan(t *testing.T, s *oneturntest.Server, turn, effect string) *orphan {
	t.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	js, err := jetstream.New(s.Connect())
	require.NoError(t, err)
	o := &orphan{s: s, js: js, space: space, id: oneturn.TurnID{App: "app", Chat: "chat 1", Turn: turn}}
	o.key = subjects.TurnKey(o.id.App, o.id.Chat, "", turn)
	o.event = events.ToolCall{
		ID: turn, AppID: o.id.App, ChatID: o.id.Chat, Turn: turn, Agent: "Greeter", ToolName: "greet", ToolCallID: turn, CallID: turn,
		Corr: turn, WorkflowName: "Hello", InteractionType: events.InteractionAutoTool,
		Payload: events.ToolCallPayload{ToolArgs: map[string]any{"name": "Ada"}},
	}
	o.meta = map[string]string{
		idempotency.HeaderOwner: "dead worker", idempotency.HeaderNonce: "n", idempotency.HeaderEpoch: "1",
		idempotency.HeaderEffect: effect, idempotency.HeaderFingerprint: strings.Repeat("ab", 32),
		idempotency.HeaderLease: "ONETURN_IN/987654/1",
	}
	return o
}

// store writes the claim.
func (o *orphan) store(t *testing.T) {
	t.Helper()
	body, err := events.Encode(events.KindToolCall, &o.event, time.Now())
	require.NoError(t, err)
	o.record(t, o.key.Public(events.KindToolCall), body, o.meta)
}

func (o *orphan) record(t *testing.T, key string, body []byte, meta map[string]string) {
	t.Helper()
	m := &nats.Msg{Subject: o.space.JournalSubject(key), Header: nats.Header{}, Data: body}
	for name, value := range meta {
		m.Header.Set(name, value)
	}
	_, err := o.js.PublishMsg(t.Context(), m)
	require.NoError(t, err)
}

// response waits for the end of the turn.
func (o *orphan) response(t *testing.T) *events.ToolResponse {
	t.Helper()
	kv, err := o.js.KeyValue(t.Context(), o.space.TurnsBucket())
	require.NoError(t, err)
	var r events.ToolResponse
	require.Eventually(t, func() bool {
		entry, err := kv.Get(t.Context(), o.key.Public(events.KindToolResponse))
		if err != nil {
			return false
		}
		m, err := events.Parse(entry.Value())
		return err == nil && m.As(&r) == nil
	}, 20*time.Second, 20*time.Millisecond, "the turn has no end")
	return &r
}

func (o *orphan) load(t *testing.T) (*idempotency.Turn, error) {
	t.Helper()
	kv, err := kvstore.Open(o.s.Connect(), o.space)
	require.NoError(t, err)
	defer kv.Close()
	return idempotency.Load(t.Context(), kv, o.key)
}

// fixer is a worker whose tool notes what it is given, with the given effect.
type fixer struct {
	mu     sync.Mutex
	seen   []string
	epochs []int
}

func (f *fixer) config(effect oneturn.Effect) oneturn.Config {
	fix := func(ctx context.Context, in greeting) (greeted, error) {
		call := tool.Info(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.seen = append(f.seen, in.Name)
		f.epochs = append(f.epochs, call.Epoch)
		return greeted{Status: "success", Message: "Hello, " + in.Name[:min(3, len(in.Name))] + "!"}, nil
	}
	return oneturn.Config{
		SweepEvery: soon,
		Tools:      []oneturn.Tool{oneturn.NewTool("greet", fix, oneturn.ToolOptions{Workflow: "Hello", Agent: "Greeter", Model: "Greeting", Effect: effect})},
	}
}

func (f *fixer) entered() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.seen...)
}
