// Package traceparent carries traces from one program to the next: as the W3C header traceparent in messages and requests,
// and as the span in a context.
package traceparent

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"
)

// Header is the name of the header.
const Header = "traceparent"

// Format writes a span as the value of the header.
func Format(s trace.SpanContext) string {
	return fmt.Sprintf("00-%s-%s-%s", s.TraceID(), s.SpanID(), s.TraceFlags())
}

// Parse reads the value of the header, of any version, into the span of another program. ok is false for any other text.
func Parse(text string) (span trace.SpanContext, ok bool) {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if len(text) != length || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return trace.SpanContext{}, false
	}
	traceID, err := trace.TraceIDFromHex(text[3:35])
	if err != nil {
		return trace.SpanContext{}, false
	}
	spanID, err := trace.SpanIDFromHex(text[36:52])
	if err != nil {
		return trace.SpanContext{}, false
	}
	flags := trace.TraceFlags(0)
	if text[54] == '1' || text[54] == '3' {
		flags = trace.FlagsSampled
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: flags, Remote: true}), true
}

// From returns the value of the header for what is sent with a context, "" if the context has no span.
func From(ctx context.Context) string {
	if s := trace.SpanContextFromContext(ctx); s.IsValid() {
		return Format(s)
	}
	return ""
}

// With returns a context for handling a message or request with this value of the header: spans that begin in it are children of that
// span. An invalid value is ignored.
func With(ctx context.Context, text string) context.Context {
	if s, ok := Parse(text); ok {
		return trace.ContextWithRemoteSpanContext(ctx, s)
	}
	return ctx
}
