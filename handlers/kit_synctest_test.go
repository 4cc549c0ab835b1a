package handlers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	"github.com/oneturn/oneturn/internal/test/storetest"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/variables"
	"github.com/oneturn/oneturn/subjects"
)

// bubble is a worker's handlers in a bubble of synctest: all that they work with is in memory,
// and the clock is the test's.
type bubble struct {
	*handlers.Handlers

	t     *testing.T
	space subjects.Space
	store *storetest.Memory
	key   subjects.Key
	vars  map[string]any // of the chat
	blobs map[string][]byte
	slots slots

	registry *prometheus.Registry

	seq uint64

	mu        sync.Mutex
	live      []liveEvent
	scheduled []*events.Expire
}

type liveEvent struct {
	at   time.Duration // since the bubble was opened
	kind string
	data map[string]any
}

// slots counts who is away.
type slots struct{ away atomic.Int32 }

func (s *slots) Release() { s.away.Add(1) }

func (s *slots) Reacquire() { s.away.Add(-1) }

// Load implements [variables.Store].
func (o *bubble) Load(_ context.Context, _, _ string, below variables.Layers) (map[string]any, error) {
	vars := maps.Clone(o.vars)
	maps.Copy(vars, below.Snapshot)
	return vars, nil
}

// Stage implements [variables.Store].
func (o *bubble) Stage(context.Context, string, string, variables.Change) error { return nil }

// Apply implements [variables.Store].
func (o *bubble) Apply(context.Context, string, string, variables.Message) (variables.Applied, error) {
	return variables.Applied{}, nil
}

// InOrder implements [variables.Store].
func (o *bubble) InOrder(context.Context, string, string, variables.Message) (bool, error) {
	return true, nil
}

// Unread implements [variables.Store].
func (o *bubble) Unread(context.Context, string, string, variables.Layers, []string) (map[string]any, []string, error) {
	return nil, nil, nil
}

// Fill implements [variables.Store].
func (o *bubble) Fill(context.Context, string, string, map[string]any) error { return nil }

// Merge implements [variables.Store].
func (o *bubble) Merge(context.Context, string, string, uint64, variables.Delta) error { return nil }

const inline = 4096

// Inline implements [store.BlobStore].
func (o *bubble) Inline(size int) bool { return size <= inline }

// Shrink implements [store.BlobStore].
func (o *bubble) Shrink(_ context.Context, key subjects.Key, kind string, _ any, data []byte) (any, error) {
	name := key.String() + "." + kind
	o.blobs[name] = slices.Clone(data)
	return events.Blob{Blob: name, SHA256: "sum", Size: len(data)}, nil
}

// Object implements [store.BlobStore].
func (o *bubble) Value(_ context.Context, _ subjects.Key, _ string, stored any) (any, error) {
	return stored, nil
}

func (o *bubble) Object(_ context.Context, key subjects.Key, kind string, stored any) (map[string]any, error) {
	object, _ := stored.(map[string]any)
	if name := key.String() + "." + kind; object["$blob"] == name {
		tree, err := events.Decode(o.blobs[name])
		object, _ = tree.(map[string]any)
		return object, err
	}
	return object, nil
}

// inBubble runs a test in a bubble, with a tool of an effect.
func inBubble(t *testing.T, effect bindings.Effect, tool toolFunc, test func(t *testing.T, o *bubble)) {
	t.Helper()
	set, err := bindings.Load(t.Context(), bindings.Options{Declared: []bindings.Declaration{
		{Workflow: "WF", Agent: "A", Model: "M", Tool: "t", Schema: json.RawMessage(`{"type":"object"}`), Effect: effect, MaxAttempts: 2, Component: "Card", Mode: "artifact"},
	}})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		counters, err := metrics.New(registry)
		require.NoError(t, err)
		space, err := subjects.New(subjects.DefaultPrefix)
		require.NoError(t, err)
		o := &bubble{
			t: t, space: space, registry: registry, store: storetest.NewMemory(), key: subjects.TurnKey("app", "chat", "", "turn"),
			vars: map[string]any{"plan": "gold"}, blobs: map[string][]byte{},
		}
		opened := time.Now()
		o.Handlers = handlers.New(handlers.Config{
			Config: run.Config{
				Space:       space,
				Journal:     idempotency.New(o.store, "w", idempotency.Options{}),
				Bindings:    func() *bindings.Set { return set },
				Blobs:       o,
				Metrics:     counters,
				Logger:      slog.New(slog.DiscardHandler),
				Now:         time.Now,
				MaxTurnLife: 7 * 24 * time.Hour,
				ParkAfter:   10 * time.Second,
				Live: func(_ string, data []byte) error {
					m, err := events.Parse(data)
					if err != nil {
						return err
					}
					o.mu.Lock()
					defer o.mu.Unlock()
					o.live = append(o.live, liveEvent{time.Since(opened), m.Kind, m.Data})
					return nil
				},
				Schedule: func(_ context.Context, e *events.Expire) error {
					o.mu.Lock()
					defer o.mu.Unlock()
					o.scheduled = append(o.scheduled, e)
					return nil
				},
			},
			Engine:       engine.New(engine.Options{Timeout: 30 * time.Second, OnAbandoned: func(string) { counters.Abandoned.Inc() }}),
			Tool:         func(*bindings.Binding) (tools.Invoker, error) { return tool, nil },
			Variables:    o,
			BindingGrace: time.Second,
			MaxEventAge:  time.Hour,
		})
		test(t, o)
	})
}

// message is the first delivery of a message on a subject of a kind.
func (o *bubble) message(kind string, body []byte) *inbound.Message {
	o.seq++
	return &inbound.Message{
		Subject: o.space.In("default", kind, "app", "WF", "chat"), Data: body, Stored: time.Now(),
		Lease: idempotency.Lease{Stream: "IN", Seq: o.seq, Delivery: 1}, Held: o.t.Context(), Fresh: func() bool { return true }, Slot: &o.slots,
	}
}

// turn is the message of the turn.
func (o *bubble) turn(change ...func(*events.StructuredOutputReady)) *inbound.Message {
	o.t.Helper()
	e := &events.StructuredOutputReady{
		TurnID: events.TurnID{App: "app", Chat: "chat", Turn: "turn"}, Workflow: "WF", Agent: "A", Model: "M",
		Data: map[string]any{"n": json.Number("1")}, AutoToolMode: true, UserID: "ada",
	}
	for _, f := range change {
		f(e)
	}
	body, err := events.EncodeTurn(e, time.Now())
	require.NoError(o.t, err)
	return o.message(events.KindStructuredOutputReady, body)
}

// handle has a message handled concurrently with the test.
func (o *bubble) handle(m *inbound.Message) <-chan inbound.Disposition {
	done := make(chan inbound.Disposition, 1)
	go func() { done <- o.Handle(o.t.Context(), m) }()
	synctest.Wait()
	return done
}

// answers is the answer of the user to a question.
func (o *bubble) answers(ask string, value any) *inbound.Message {
	o.t.Helper()
	body, err := events.EncodeAnswer(&events.ToolCallResponse{
		TurnID: events.TurnID{App: "app", Chat: "chat"}, Workflow: "WF", ToolCallID: "turn/" + ask, UserID: "ada", Value: value,
	}, time.Now())
	require.NoError(o.t, err)
	return o.message(events.KindToolCallResponse, body)
}

// answer has an answer handled, and its live copy arrive.
func (o *bubble) answer(ask string, value any) {
	o.t.Helper()
	require.Equal(o.t, inbound.Ack, o.Handle(o.t.Context(), o.answers(ask, value)).Do)
	o.AckSeen(subjects.Record{Key: o.key, Kind: events.RecordAck, ID: subjects.Token(ask)})
	synctest.Wait()
}

// record returns what is stored under a public key of the turn.
func (o *bubble) record(kind string, id ...string) map[string]any {
	o.t.Helper()
	r, err := o.store.Last(o.t.Context(), o.key.Public(kind, id...))
	require.NoError(o.t, err)
	m, err := events.Parse(r.Data)
	require.NoError(o.t, err)
	return m.Data
}

func (o *bubble) response() events.ToolResponse {
	o.t.Helper()
	r, err := o.store.Last(o.t.Context(), o.key.Public(events.KindToolResponse))
	require.NoError(o.t, err)
	m, err := events.Parse(r.Data)
	require.NoError(o.t, err)
	var response events.ToolResponse
	require.NoError(o.t, m.As(&response))
	return response
}

// heard returns the live events of a kind so far.
func (o *bubble) heard(kind string) (found []liveEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.live {
		if e.kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// count returns the value of a metric, of all its labels or of one with a label of this value.
func (o *bubble) count(name string, label ...string) (n int) {
	o.t.Helper()
	families, err := o.registry.Gather()
	require.NoError(o.t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "oneturn_"+name && (len(label) == 0 || m.GetLabel()[0].GetValue() == label[0]) {
				n += int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
			}
		}
	}
	return n
}

func (o *bubble) parked() bool {
	o.t.Helper()
	turn, err := o.Journal.Load(o.t.Context(), o.key)
	require.NoError(o.t, err)
	return turn.Parked()
}

// pass lets time pass in a bubble, and what is due then be done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// settled is the disposition of a message that is handled by now.
func settled(t *testing.T, done <-chan inbound.Disposition) inbound.Disposition {
	t.Helper()
	synctest.Wait()
	select {
	case d := <-done:
		return d
	default:
		require.FailNow(t, "the message is still being handled")
		return inbound.Disposition{}
	}
}

// asks is a tool that asks by these names, or numbers for "", and returns the answers.
func asks(names ...string) toolFunc {
	return func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		var all []json.RawMessage
		for _, name := range names {
			a, err := call.Host.Ask(ctx, tools.Question{Name: name})
			if err != nil {
				return tools.Result{}, err
			}
			all = append(all, a.Value)
		}
		value, err := json.Marshal(all)
		return tools.Result{Value: value}, err
	}
}
