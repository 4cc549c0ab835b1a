// Package oteltrace reports the calls of an engine to OpenTelemetry: a span for each, a child of the
// turn's traceparent or of the span in its context, and its phases as span events. A program is a span
// too, with its states as span events; its steps are its children. It needs the API of OpenTelemetry only;
// the provider decides where spans go.
package oteltrace

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/traceparent"
)

// attributes is how many a span gets at most when it begins.
const attributes = 9

// scope names who makes the spans.
const scope = "github.com/oneturn/oneturn"

// New returns a tracer that makes spans with a provider. Spans hold ids, names and codes; of texts,
// only the errors of calls, and only if errorText is true: they may hold data of the turn.
func New(provider trace.TracerProvider, errorText bool) engine.Spans {
	return &tracer{provider.Tracer(scope), errorText}
}

type tracer struct {
	tracer    trace.Tracer
	errorText bool
}

// Begin implements [engine.Spans]. The tool gets this span as its parent instead of the turn's.
func (t *tracer) Begin(ctx context.Context, call *tools.Call) (context.Context, *tools.Call, func(engine.Outcome)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		if parent, ok := traceparent.Parse(call.Trace); ok {
			ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
		}
	}
	attrs := append(make([]attribute.KeyValue, 0, attributes),
		attribute.String("oneturn.tool", call.Name), attribute.String("oneturn.workflow", call.Workflow), attribute.String("oneturn.agent", call.Agent),
		attribute.String("oneturn.app", call.Turn.App), attribute.String("oneturn.chat", call.Turn.Chat), attribute.String("oneturn.call", call.CallID),
		attribute.Int("oneturn.epoch", call.Epoch),
	)
	if call.Effect != "" {
		attrs = append(attrs, attribute.String("oneturn.effect", call.Effect))
	}
	if call.Depth > 0 {
		attrs = append(attrs, attribute.Int("oneturn.depth", call.Depth))
	}
	ctx, span := t.tracer.Start(ctx, "tool "+call.Name, trace.WithAttributes(attrs...))
	if own := span.SpanContext(); own.IsValid() {
		traced := *call
		traced.Trace = traceparent.Format(own)
		call = &traced
	}
	return ctx, call, func(o engine.Outcome) { t.end(span, o) }
}

func (t *tracer) end(span trace.Span, o engine.Outcome) {
	span.SetAttributes(
		attribute.String("oneturn.code", string(o.Code)), attribute.Int("oneturn.attempts", o.Attempts), attribute.Bool("oneturn.cached", o.Cached),
		attribute.Int64("oneturn.waited_ms", o.Waited.Milliseconds()), attribute.Bool("oneturn.stopped", o.Stopped != nil),
	)
	if o.Code != "" {
		text := string(o.Code)
		if t.errorText {
			text = o.Message
		}
		span.SetStatus(codes.Error, text)
	}
	span.End()
}

// Emit implements [engine.Tracer].
func (t *tracer) Emit(ctx context.Context, name string, attrs ...slog.Attr) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	kept := make([]attribute.KeyValue, 0, len(attrs))
	for _, a := range attrs {
		switch {
		case a.Value.Kind() == slog.KindInt64:
			kept = append(kept, attribute.Int64(a.Key, a.Value.Int64()))
		case named(a.Key), t.errorText && a.Value.Kind() == slog.KindString:
			kept = append(kept, attribute.String(a.Key, a.Value.String()))
		default:
			if keys, ok := a.Value.Any().([]string); ok {
				kept = append(kept, attribute.Int(a.Key, len(keys)))
			}
		}
	}
	span.AddEvent(name, trace.WithAttributes(kept...))
}

// named reports whether an attribute of an event is a name, an id or a code, rather than a text.
func named(key string) bool {
	switch key {
	case "tool_name", "state", "event", "step":
		return true
	default:
		return false
	}
}
