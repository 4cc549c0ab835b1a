package gateway

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/oneturn/oneturn/internal/traceparent"
)

// Spans: one of each request at an endpoint, and one of each frame of a WebSocket that is a command. They continue the trace of the
// client, and what they publish continues theirs, so one trace leads from the browser to the tool. Their names and attributes
// are endpoints, routes and codes, never ids. Without a provider the trace of the client passes through.

// scope names who makes the spans.
const scope = "github.com/oneturn/oneturn/gateway"

func tracerOf(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = noop.NewTracerProvider()
	}
	return p.Tracer(scope)
}

// begin begins the span of a request that was authenticated, or refused: a token never reaches a copy of its request.
func (c *call) begin(tracer trace.Tracer, at *route) {
	ctx := traceparent.With(c.r.Context(), parentOf(c.r))
	ctx, c.span = tracer.Start(ctx, "gateway "+c.endpoint, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(c.begun), trace.WithAttributes( //nolint:spancheck // call.end ends it
		attribute.String("oneturn.door", c.endpoint), attribute.String("http.request.method", at.method), attribute.String("http.route", at.pattern),
	))
	c.r = c.r.WithContext(ctx)
}

// parentOf returns the trace of a request, "" if it has none or several.
func parentOf(r *http.Request) string {
	if sent := r.Header.Values(traceparent.Header); len(sent) == 1 {
		return sent[0]
	}
	return ""
}

// end ends the span of a request, once. A stream without end has ended its span when it began.
func (c *call) end(status int) {
	if c.span == nil {
		return
	}
	setOutcome(c.span, status, c.code)
	c.span.End()
	c.span = nil
}

// setOutcome sets how a request or a frame was answered. What a client has done wrong is not an error of the gateway.
func setOutcome(span trace.Span, status int, code string) {
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if code != "" {
		span.SetAttributes(attribute.String("oneturn.code", code))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, code)
	}
}

// command begins the span of a frame.
func (s *socket) command(ctx context.Context, f *frame, name string) (context.Context, trace.Span) {
	return s.g.tracer.Start(traceparent.With(ctx, f.trace), "gateway ws "+name, trace.WithSpanKind(trace.SpanKindServer), //nolint:spancheck // the caller ends it
		trace.WithAttributes(attribute.String("oneturn.door", "ws"), attribute.String("oneturn.frame", name)))
}
