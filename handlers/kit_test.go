package handlers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/embedded"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/deadletter"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/jsapi"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/oneturntest"
	"github.com/oneturn/oneturn/subjects"
)

// The kit has handlers on an embedded server, whose messages tests make and handle one at a time. Tests of questions add
// kit_questions_test.go; tests of time use the bubble of kit_synctest_test.go.

func TestMain(m *testing.M) { oneturntest.VerifyNoLeaks(m) }

// kit is handlers on a real server, with the journal in memory.
type kit struct {
	*handlers.Handlers

	t     *testing.T
	space subjects.Space
	js    jetstream.JetStream
	store *storetest.Memory

	registry *prometheus.Registry
	times    sync.Map // when a message was stored, by its sequence: the same for each delivery
}

func newKit(t *testing.T, tool tools.Invoker, change ...func(*embedded.Options)) *kit {
	t.Helper()
	s := oneturntest.NewServer(t, append(change, oneturntest.Memory)...)
	s.Provision()
	nc := s.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(t, err)
	blobs, err := store.NewBlobs(t.Context(), nc, js, space)
	require.NoError(t, err)
	variables, err := variables.New(t.Context(), js, space)
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	counters, err := metrics.New(registry)
	require.NoError(t, err)
	set, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "WF", Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(`{"type":"object"}`), Effect: bindings.EffectIdempotent},
	}})
	require.NoError(t, err)
	k := &kit{t: t, space: space, js: js, store: storetest.NewMemory(), registry: registry}
	variables.Journal = idempotency.New(k.store, "w", idempotency.Options{})
	k.Handlers = handlers.New(handlers.Config{
		Config: run.Config{
			Space:      space,
			Journal:    variables.Journal,
			Bindings:   func() *bindings.Set { return set },
			Blobs:      blobs,
			Live:       nc.Publish,
			Metrics:    counters,
			Logger:     slog.New(slog.DiscardHandler),
			Now:        time.Now,
			ServerTime: func(ctx context.Context) (time.Time, error) { return jsapi.ServerTime(ctx, js, space.InStream()) },
		},
		Engine:       engine.New(engine.Options{}),
		Tool:         func(*bindings.Binding) (tools.Invoker, error) { return tool, nil },
		Variables:    variables,
		Dead:         deadletter.New(js, space, blobs, counters),
		BindingGrace: time.Second,
		MaxEventAge:  time.Hour,
	})
	return k
}

// message is a delivery of a turn.
func (k *kit) message(seq, delivery uint64) *inbound.Message {
	k.t.Helper()
	event := &events.StructuredOutputReady{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Agent: "A", Model: "M",
		Data: map[string]any{}, AutoToolMode: true,
	}
	body, err := events.EncodeTurn(event, time.Now())
	require.NoError(k.t, err)
	stored, _ := k.times.LoadOrStore(seq, time.Now())
	return &inbound.Message{
		Subject: k.space.In("default", events.KindStructuredOutputReady, "app", "WF", "chat"), Data: body,
		Lease: idempotency.Lease{Stream: "IN", Seq: seq, Delivery: delivery}, Stored: stored.(time.Time), //nolint:forcetypeassert // nothing else is stored
		Held: k.t.Context(), Fresh: func() bool { return true },
	}
}

// claimEvent is what the claim of the turn holds.
func (k *kit) claimEvent() []byte {
	k.t.Helper()
	data, err := events.Encode(events.KindToolCall, &events.ToolCall{
		AppID: "app", ChatID: "chat", Turn: "turn", ToolCallID: "turn", WorkflowName: "WF", Agent: "A", ToolName: "t",
		Payload: events.ToolCallPayload{ToolArgs: map[string]any{}},
	}, time.Now())
	require.NoError(k.t, err)
	return data
}

func (k *kit) response() *events.ToolResponse {
	k.t.Helper()
	r, err := k.store.Last(k.t.Context(), subjects.TurnKey("app", "chat", "", "turn").Public("tool_response"))
	require.NoError(k.t, err)
	m, err := events.Parse(r.Data)
	require.NoError(k.t, err)
	var response events.ToolResponse
	require.NoError(k.t, m.As(&response))
	return &response
}

type toolFunc func(ctx context.Context, call *tools.Call) (tools.Result, error)

func (f toolFunc) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	return f(ctx, call)
}

func nothing(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, nil }
