package engine

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// What a call reports of its phases to the [Tracer] of its engine: names, counts, and texts of errors without secret
// answers. Without a tracer none of it costs anything.

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

// forTracers is the outcome of a call as tracers get it.
func (o *Outcome) forTracers(call *tools.Call) Outcome {
	end := *o
	end.Payload, end.Content, end.Message = nil, "", call.Secrets.Text(o.Message)
	return end
}
