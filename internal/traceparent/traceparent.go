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

// Parse reads the value of the header into the span of another program, as W3C Trace Context defines it: of a version that is not known yet,
// the fields of version 00 count, and what may follow them does not. ok is false for any other text.
func Parse(text string) (span trace.SpanContext, ok bool) {
	const length = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if len(text) < length || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return trace.SpanContext{}, false
	}
	version, ok := hexByte(text[:2])
	if !ok || version == invalidVersion || len(text) > length && (version == 0 || text[length] != '-') {
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
	flags, ok := hexByte(text[53:length])
	if !ok {
		return trace.SpanContext{}, false
	}
	sampled := trace.TraceFlags(flags) & trace.FlagsSampled // the other bits have no meaning yet
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, TraceFlags: sampled, Remote: true}), true
}

// invalidVersion is the version that no header has.
const invalidVersion = 0xff

// hexByte reads two digits, in lower case.
func hexByte(digits string) (b byte, ok bool) {
	for _, c := range []byte(digits) {
		switch {
		case '0' <= c && c <= '9':
			b = b<<4 | (c - '0')
		case 'a' <= c && c <= 'f':
			b = b<<4 | (c - 'a' + 10)
		default:
			return 0, false
		}
	}
	return b, true
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
