package engine_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
)

// lab is an engine whose calls are recorded: no pause between attempts, and a cache. Its one tool is called t.
type lab struct {
	*testing.T

	trace *recorder

	o    engine.Options
	tool engine.Tool
	// calls of the tool, and the arguments of the last one
	calls int
	args  map[string]any
}

// inLab makes a lab whose tool answers so.
func inLab(t *testing.T, answer func(ctx context.Context, call *tools.Call) (tools.Result, error)) *lab {
	t.Helper()
	l := &lab{T: t, trace: &recorder{}}
	l.tool.Invoker = toolFunc(func(ctx context.Context, call *tools.Call) (tools.Result, error) {
		l.calls++
		l.args = call.Args
		return answer(ctx, call)
	})
	l.tool.MaxAttempts = 2
	l.tool.Cache = bindings.Cache{TTL: time.Hour}
	l.o = engine.Options{
		Backoff: func(int) time.Duration { return 0 }, Cache: &memory{}, Tracer: l.trace,
	}
	return l
}

func (l *lab) schema(schema string) *lab {
	l.Helper()
	m, err := model.CompileSchema("t", json.RawMessage(schema))
	require.NoError(l, err)
	l.tool.Input = m
	return l
}

// run calls the tool with arguments as JSON; "" for none.
func (l *lab) run(raw string) engine.Outcome {
	l.Helper()
	return l.do(l.Context(), "t", raw)
}

func (l *lab) do(ctx context.Context, name, raw string) engine.Outcome {
	l.Helper()
	call := &tools.Call{Name: name, Turn: events.TurnID{App: "app", Chat: "chat"}, UserID: "ada"}
	if raw != "" {
		tree, err := events.Decode([]byte(raw))
		require.NoError(l, err)
		call.Args, _ = tree.(map[string]any)
		call.ArgsJSON = json.RawMessage(raw)
	}
	inv := engine.Invocation{Call: call}
	if name == "t" { // its one tool
		inv.Tool = l.tool
	}
	return engine.New(l.o).Do(ctx, inv)
}

// traced returns what was traced since the last call, a line each: the name and its attributes but
// for the name of the tool, which all have.
func (l *lab) traced() []string {
	l.Helper()
	var lines []string
	for _, e := range l.trace.events {
		require.Equal(l, "tool_name", e.attrs[0].Key)
		line := []string{e.name}
		for _, a := range e.attrs[1:] {
			line = append(line, a.String())
		}
		lines = append(lines, strings.Join(line, " "))
	}
	l.trace = &recorder{}
	l.o.Tracer = l.trace
	return lines
}

// memory is a cache without bounds.
type memory struct {
	mu     sync.Mutex
	values map[engine.CacheKey]json.RawMessage
	ttl    time.Duration
}

func (m *memory) Get(key engine.CacheKey) (json.RawMessage, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[key]
	return value, ok
}

func (m *memory) Put(key engine.CacheKey, value json.RawMessage, ttl time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[engine.CacheKey]json.RawMessage{}
	}
	m.values[key], m.ttl = value, ttl
}

// guard is a guard of two functions; nil lets everything pass.
type guard struct {
	input  func(call *tools.Call) error
	output func(output json.RawMessage) error
}

func (g guard) Input(_ context.Context, call *tools.Call) error {
	if g.input == nil {
		return nil
	}
	return g.input(call)
}

func (g guard) Output(_ context.Context, _ *tools.Call, output json.RawMessage) error {
	if g.output == nil {
		return nil
	}
	return g.output(output)
}

func refuse(reason string) error { return &guards.Refusal{Reason: reason} }

// echo returns its arguments.
func echo(_ context.Context, call *tools.Call) (tools.Result, error) {
	data, err := json.Marshal(call.Args)
	return tools.Result{Value: data}, err
}

func fails(err error) func(context.Context, *tools.Call) (tools.Result, error) {
	return func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, err }
}

// recorder is a tracer that remembers the phases of calls.
type recorder struct {
	mu     sync.Mutex
	events []traced
}

type traced struct {
	name  string
	attrs []slog.Attr
}

// Emit implements [engine.Tracer].
func (r *recorder) Emit(_ context.Context, name string, attrs ...slog.Attr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, traced{name, attrs})
}
