package handlers_test

import (
	"context"
	"encoding/json"
	"log/slog"
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

// BenchmarkTurn is a turn whose tool does nothing, with a journal in memory: what a worker does
// besides waiting for the server.
func BenchmarkTurn(b *testing.B) {
	set, err := bindings.Load(b.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "WF", Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(`{"type":"object"}`)},
	}})
	require.NoError(b, err)
	space, err := subjects.New(subjects.DefaultPrefix)
	require.NoError(b, err)
	counters, err := metrics.New(prometheus.NewRegistry())
	require.NoError(b, err)
	tool := toolFunc(nothing)
	h := handlers.New(handlers.Config{
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
	messages := make([]*inbound.Message, b.N)
	for i := range messages {
		body, err := events.EncodeTurn(&events.StructuredOutputReady{
			TurnID: events.TurnID{App: "app", Chat: "chat", Turn: strconv.Itoa(i)}, Workflow: "WF", Agent: "A", Model: "M", Data: map[string]any{}, AutoToolMode: true,
		}, time.Now())
		require.NoError(b, err)
		messages[i] = &inbound.Message{
			Subject: space.In("default", events.KindStructuredOutputReady, "app", "WF", "chat"), Data: body, Stored: time.Now(),
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
}
