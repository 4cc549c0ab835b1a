package handlers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/handlers"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/inbound"
	"github.com/oneturn/oneturn/internal/metrics"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/store"
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/subjects"
)

// smallBlobs stores nothing: all payloads are small.
type smallBlobs struct{ store.BlobStore }

func (smallBlobs) Inline(int) bool { return true }

func (smallBlobs) Object(_ context.Context, _ subjects.Key, _ string, stored any) (map[string]any, error) {
	object, _ := stored.(map[string]any)
	return object, nil
}

func (smallBlobs) Value(_ context.Context, _ subjects.Key, _ string, stored any) (any, error) {
	return stored, nil
}

// benchHandlers are handlers of the workflows of a set, with a journal in memory and one tool.
func benchHandlers(b *testing.B, set *bindings.Set, tool toolFunc) *handlers.Handlers {
	b.Helper()
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(b, err)
	counters, err := metrics.New(prometheus.NewRegistry())
	require.NoError(b, err)
	return handlers.New(handlers.Config{
		Config: run.Config{
			Space:    space,
			Journal:  idempotency.New(storetest.NewMemory(), "w", idempotency.Options{}),
			Bindings: func() *bindings.Set { return set },
			Blobs:    smallBlobs{},
			Metrics:  counters,
			Logger:   slog.New(slog.DiscardHandler),
			Now:      time.Now,
		},
		Engine:      engine.New(engine.Options{}),
		Tool:        func(*bindings.Binding) (tools.Invoker, error) { return tool, nil },
		MaxEventAge: time.Hour,
	})
}

// benchTurns handles as many turns as the benchmark asks for, each with the same data.
func benchTurns(b *testing.B, h *handlers.Handlers, model string, data any) {
	b.Helper()
	messages := make([]*inbound.Message, b.N)
	for i := range messages {
		body, err := events.EncodeTurn(&events.StructuredOutputReady{
			TurnID: events.TurnID{App: "app", Chat: "chat", Turn: strconv.Itoa(i)}, Workflow: "WF", Agent: "A", Model: model, Data: data, AutoToolMode: true,
		}, time.Now())
		require.NoError(b, err)
		messages[i] = &inbound.Message{
			Subject: h.Space.In("default", events.KindStructuredOutputReady, "app", "WF", "chat"), Data: body, Stored: time.Now(),
			Lease: idempotency.Lease{Stream: "IN", Seq: uint64(i + 1), Delivery: 1}, Held: b.Context(), Fresh: func() bool { return true },
		}
	}
	ctx := context.Background()
	b.ReportAllocs()
	b.ResetTimer()
	for _, m := range messages {
		if d := h.Handle(ctx, m); d.Do != inbound.Ack {
			b.Fatal(d)
		}
	}
	b.StopTimer()
	last, err := h.Journal.Load(ctx, subjects.TurnKey("app", "chat", "", strconv.Itoa(b.N-1)))
	require.NoError(b, err)
	response, err := events.ReadResponse(last.Response.Data)
	require.NoError(b, err)
	require.True(b, response.Success, "%v", response)
}

// BenchmarkTurn is a turn whose tool does nothing, with a journal in memory: what a worker does
// besides waiting for the server.
func BenchmarkTurn(b *testing.B) {
	set, err := bindings.Load(b.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "WF", Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(`{"type":"object"}`)},
	}})
	require.NoError(b, err)
	benchTurns(b, benchHandlers(b, set, nothing), "M", map[string]any{})
}

// benchProgram has tools with schemas as MCP servers report them.
const benchProgram = `
agents: {A: }
tools:
- {name: run_plan, kind: plan, agent: A, uses: [work, other]}
- name: work
  kind: go
  auto: false
  effect: idempotent
  input: &schema
    type: object
    required: [n]
    properties:
      n: {type: integer, minimum: 0}
      note: {type: string, maxLength: 1000}
      customer: {type: object, properties: {name: {type: string}, emails: {type: array, items: {type: string, format: email}}, address: {type: object, properties: {city: {type: string}, zip: {type: string}}}}}
      tags: {type: array, items: {enum: [new, old, late]}}
  output: {type: object, properties: {ok: {type: boolean}, items: {type: array, items: {type: object, properties: {id: {type: string}, price: {type: number}}}}}}
- {name: other, kind: go, auto: false, effect: idempotent, input: *schema}
`

// BenchmarkProgramTurn is a turn whose tool is a plan of some calls, as BenchmarkTurn.
func BenchmarkProgramTurn(b *testing.B) {
	dir := b.TempDir()
	require.NoError(b, os.MkdirAll(filepath.Join(dir, "WF"), 0o750))
	require.NoError(b, os.WriteFile(filepath.Join(dir, "WF", "oneturn.yaml"), []byte(benchProgram), 0o600))
	set, err := bindings.Load(b.Context(), bindings.Options{Root: dir})
	require.NoError(b, err)
	empty := func(context.Context, *tools.Call) (tools.Result, error) {
		return tools.Result{Value: []byte(`{}`)}, nil
	}
	for _, calls := range []int{1, 5, 20} {
		list := make([]any, calls)
		for i := range list {
			list[i] = map[string]any{"tool_name": "work", "arguments": map[string]any{"n": json.Number(strconv.Itoa(i)), "note": "one of many", "customer": map[string]any{"name": "Ada"}}}
		}
		b.Run(strconv.Itoa(calls), func(b *testing.B) {
			benchTurns(b, benchHandlers(b, set, empty), "", map[string]any{"type": "tool_calls", "calls": list})
		})
	}
}
