package engine

import (
	"context"
	"log/slog"

	"github.com/oneturn/oneturn/internal/tools"
)

// Observers of calls: Tracer gets the phases, Spans the beginning and the end as well. Tracers joins several,
// LogTracer writes a log without texts of tools.

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

// Tracers returns a tracer that reports to all of list, in this order. Nil entries are left out;
// it returns nil if none remains.
func Tracers(list ...Tracer) Tracer {
	var all tracers
	for _, t := range list {
		if t != nil {
			all = append(all, t)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

type tracers []Tracer

// Begin implements [Spans].
func (l tracers) Begin(ctx context.Context, call *tools.Call) (context.Context, *tools.Call, func(Outcome)) {
	var ends []func(Outcome)
	for _, t := range l {
		s, ok := t.(Spans)
		if !ok {
			continue
		}
		var end func(Outcome)
		if ctx, call, end = s.Begin(ctx, call); end != nil {
			ends = append(ends, end)
		}
	}
	return ctx, call, func(o Outcome) {
		for _, end := range ends {
			end(o)
		}
	}
}

// Emit implements [Tracer].
func (l tracers) Emit(ctx context.Context, name string, attrs ...slog.Attr) {
	for _, t := range l {
		t.Emit(ctx, name, attrs...)
	}
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
