package engine

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// Tracer is notified of the phases of calls as they happen; docs/engine.md lists names and attributes.
// They may contain texts of tools, without secret answers. It is safe for concurrent use and returns
// soon.
type Tracer interface {
	Emit(ctx context.Context, name string, attrs ...slog.Attr)
}

// Spans is a [Tracer] for which a call is a span: a time with a beginning and an end.
type Spans interface {
	Tracer
	// Begin returns the context and the call to continue with, and a function for the outcome, which
	// comes without payload and content. The call given is not changed.
	Begin(ctx context.Context, call *tools.Call) (context.Context, *tools.Call, func(Outcome))
}

// trace notifies the tracer that a phase has begun or ended well.
func (p *pipeline) trace(name string) {
	if t := p.e.o.Tracer; t != nil {
		t.Emit(p.ctx, name, p.toolName())
	}
}

// traceKeys notifies it which arguments the tool gets.
func (p *pipeline) traceKeys() {
	if t := p.e.o.Tracer; t != nil {
		t.Emit(p.ctx, "args.parse.ok", p.toolName(), slog.Any("keys", slices.Sorted(maps.Keys(p.call.Args))))
	}
}

func (p *pipeline) traceError(name string, err error) {
	if t := p.e.o.Tracer; t != nil {
		_, text := classify(err)
		t.Emit(p.ctx, name, p.toolName(), slog.String("err", text))
	}
}

func (p *pipeline) traceReason(name, reason string) {
	if t := p.e.o.Tracer; t != nil {
		t.Emit(p.ctx, name, p.toolName(), slog.String("reason", p.plain(reason)))
	}
}

// traceAttempt notifies it how an attempt failed.
func (p *pipeline) traceAttempt(r *returned) {
	t := p.e.o.Tracer
	if t == nil {
		return
	}
	code, text := classify(r.err)
	attempt, err := slog.Int("attempt", p.attempts), slog.String("err", p.plain(text))
	switch {
	case code == events.CodeTimeout:
		t.Emit(p.ctx, "tool.invoke.timeout", p.toolName(), attempt)
	case tools.IsRetryable(r.err):
		t.Emit(p.ctx, "tool.invoke.retryable", p.toolName(), attempt, err)
	case code == events.CodeUserError:
		t.Emit(p.ctx, "tool.invoke.user_error", p.toolName(), attempt, err)
	default:
		t.Emit(p.ctx, "tool.invoke.fail", p.toolName(), attempt, err)
	}
}

// traceAttempts notifies it that the tool has a result.
func (p *pipeline) traceAttempts() {
	if t := p.e.o.Tracer; t != nil {
		t.Emit(p.ctx, "tool.invoke.ok", p.toolName(), slog.Int("attempts", p.attempts))
	}
}

func (p *pipeline) toolName() slog.Attr { return slog.String("tool_name", p.call.Name) }

// plain is a text without the secret answers that the call was handed.
func (p *pipeline) plain(text string) string { return p.call.Secrets.Text(text) }

// Recorder is a [Tracer] that remembers, for tests and for looking at a single call. Its zero value
// is ready. It keeps the first 10,000 events.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Event is one notification of a [Tracer].
type Event struct {
	Name  string
	Attrs []slog.Attr
}

const maxRecorded = 10_000

// Emit implements [Tracer].
func (r *Recorder) Emit(_ context.Context, name string, attrs ...slog.Attr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < maxRecorded {
		r.events = append(r.events, Event{name, slices.Clone(attrs)})
	}
}

// Events returns the events so far, in order.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Names returns the names of [Recorder.Events].
func (r *Recorder) Names() []string {
	events := r.Events()
	names := make([]string, 0, len(events))
	for _, e := range events {
		names = append(names, e.Name)
	}
	return names
}

// LogTracer writes phases to a log at level debug: phases, tools, the chat and turn of the call, and
// numbers; no words of tools and no names of arguments.
func LogTracer(log *slog.Logger) Tracer { return logTracer{log} }

type logTracer struct{ log *slog.Logger }

type loggedKey struct{}

// Begin implements [Spans]: lines of calls that run side by side name what they belong to.
func (t logTracer) Begin(ctx context.Context, call *tools.Call) (context.Context, *tools.Call, func(Outcome)) {
	if t.log.Enabled(ctx, slog.LevelDebug) {
		ctx = context.WithValue(ctx, loggedKey{}, []slog.Attr{slog.String("chat", call.Turn.Chat), slog.String("turn", call.CallID)})
	}
	return ctx, call, nil
}

// Emit implements [Tracer].
func (t logTracer) Emit(ctx context.Context, name string, attrs ...slog.Attr) {
	if !t.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	of, _ := ctx.Value(loggedKey{}).([]slog.Attr)
	kept := append(make([]slog.Attr, 0, 1+len(attrs)+len(of)), slog.String("phase", name))
	for _, a := range attrs {
		switch a.Key {
		case "err", "reason":
		case "keys":
			if keys, ok := a.Value.Any().([]string); ok {
				kept = append(kept, slog.Int("keys", len(keys)))
			}
		default:
			kept = append(kept, a)
		}
	}
	kept = append(kept, of...)
	t.log.LogAttrs(ctx, slog.LevelDebug, "tool call", kept...)
}
