package oteltrace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/oteltrace"
	"github.com/oneturn/oneturn/internal/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// provider remembers the spans it made.
type provider struct {
	noop.TracerProvider

	spans []*span
}

func (p *provider) Tracer(string, ...trace.TracerOption) trace.Tracer { return &tracer{p: p} }

type tracer struct {
	noop.Tracer

	p *provider
}

func (t *tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanContextFromContext(ctx)
	s := &span{name: name, parent: parent, attrs: map[attribute.Key]string{}, own: trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: parent.TraceID(), SpanID: trace.SpanID{1, 2, 3}, TraceFlags: parent.TraceFlags(),
	})}
	config := trace.NewSpanStartConfig(options...)
	s.SetAttributes(config.Attributes()...)
	t.p.spans = append(t.p.spans, s)
	return trace.ContextWithSpan(ctx, s), s
}

type span struct {
	noop.Span

	name        string
	parent, own trace.SpanContext
	lines       []string
	attrs       map[attribute.Key]string
	status      string
	ended       bool
}

func (s *span) SpanContext() trace.SpanContext { return s.own }
func (*span) IsRecording() bool                { return true }
func (s *span) End(...trace.SpanEndOption)     { s.ended = true }

func (s *span) SetStatus(_ codes.Code, text string) { s.status = text }

func (s *span) SetAttributes(attrs ...attribute.KeyValue) {
	for _, a := range attrs {
		s.attrs[a.Key] = a.Value.String()
	}
}

func (s *span) AddEvent(name string, options ...trace.EventOption) {
	config := trace.NewEventConfig(options...)
	line := name
	for _, a := range config.Attributes() {
		line = fmt.Sprint(line, " ", a.Key, "=", a.Value.String())
	}
	s.lines = append(s.lines, line)
}

type toolFunc func(ctx context.Context, call *tools.Call) (tools.Result, error)

func (f toolFunc) Invoke(ctx context.Context, call *tools.Call) (tools.Result, error) {
	return f(ctx, call)
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func do(t *testing.T, traceparent string, errorText bool, run toolFunc) *span {
	t.Helper()
	p := &provider{}
	e := engine.New(engine.Options{Tracer: oteltrace.New(p, errorText)})
	call := &tools.Call{
		Name: "greet", CallID: "t1", Workflow: "WF", Agent: "A", Turn: events.TurnID{App: "app", Chat: "chat"}, Epoch: 2, Trace: traceparent,
		Args: map[string]any{"name of a person": json.Number("1")},
	}
	e.Do(t.Context(), engine.Invocation{Call: call, Tool: engine.Tool{Invoker: run}})
	require.Equal(t, traceparent, call.Trace, "the caller's call stays as it is")
	require.Len(t, p.spans, 1)
	return p.spans[0]
}

func TestCallIsASpanOfItsTurnAndItsPhasesAreEvents(t *testing.T) {
	t.Parallel()
	var seen string
	s := do(t, parent, false, func(_ context.Context, call *tools.Call) (tools.Result, error) {
		seen = call.Trace
		return tools.Result{}, nil
	})
	require.Equal(t, "tool greet", s.name)
	require.Equal(t, "b7ad6b7169203331", s.parent.SpanID().String())
	require.True(t, s.parent.IsRemote())
	require.Equal(t, "00-0af7651916cd43dd8448eb211c80319c-0102030000000000-01", seen, "the tool gets the span")
	require.True(t, s.ended)
	require.Empty(t, s.status)
	require.Equal(t, "WF", s.attrs["oneturn.workflow"])
	require.Equal(t, "1", s.attrs["oneturn.attempts"])
	require.Equal(t, []string{
		"tool.resolve.start tool_name=greet", "tool.resolve.ok tool_name=greet", "args.parse.start tool_name=greet", "args.parse.ok tool_name=greet keys=1",
		"guard.input.start tool_name=greet", "guard.input.ok tool_name=greet", "tool.invoke.start tool_name=greet",
		"tool.invoke.ok tool_name=greet attempts=1", "guard.output.start tool_name=greet", "guard.output.ok tool_name=greet",
	}, s.lines)
}

func TestTextsOfToolsAreReportedOnRequestOnly(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, errors.New("no Ada") }
	s := do(t, "", false, fails)
	require.Equal(t, "tool_error", s.status)
	require.NotContains(t, fmt.Sprint(s.lines, s.attrs), "Ada")
	s = do(t, "", true, fails)
	require.Equal(t, "tool_error:no Ada", s.status)
	require.Contains(t, s.lines, "tool.invoke.fail tool_name=greet attempt=1 err=no Ada")
}

func TestInvalidTraceparentIsNotAParent(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", parent + "0", "00-" + "zz" + parent[5:], "00-0af7651916cd43dd8448eb211c80319c-zzad6b7169203331-01"} {
		s := do(t, text, false, func(context.Context, *tools.Call) (tools.Result, error) { return tools.Result{}, nil })
		require.False(t, s.parent.IsValid(), "%q", text)
	}
}

func ExampleNew() {
	e := engine.New(engine.Options{Tracer: oteltrace.New(noop.NewTracerProvider(), false)}) // or the provider of your SDK
	tool := engine.Tool{Invoker: tools.Func(func(context.Context, struct{}) (string, error) { return "hi", nil })}
	fmt.Println(string(e.Do(context.Background(), engine.Invocation{Call: &tools.Call{Name: "greet"}, Tool: tool}).Payload))
	// Output: "hi"
}
