package handlers

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/flow"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/program"
	"github.com/oneturn/oneturn/internal/run"
	"github.com/oneturn/oneturn/internal/tools"
)

// What operators see of programs: spans and metrics. A program is a span, each of its steps a child of it. Programs and
// steps are counted by the worker that has stored their response. Labels come from manifests and from the lists below, never
// from a program.

// statusOther is the status in metrics of a step with a code that is not in the wire contract. Other steps that have failed have
// their code as status.
const statusOther = "other"

// Reasons of refusals in metrics, in addition to the reasons of package flow.
const (
	refusalInvalid  = "invalid"  // the program is not valid
	refusalDepth    = "depth"    // it is nested too deep
	refusalDisabled = "disabled" // its tool is disabled
)

// programEnd is how the program of a call has ended in this worker.
type programEnd struct {
	status  flow.Status
	refusal string // why it was not run, "" if it was
}

// refusalOf returns the reason of an error with which a program is refused, "" for any other error.
func refusalOf(err error) string {
	var refused *flow.Refused
	switch {
	case errors.As(err, &refused) && refused.Reason != "":
		return refused.Reason
	case program.TooDeep(err):
		return refusalDepth
	case refused != nil:
		return refusalInvalid
	case events.CodeOf(err) == events.CodeGuardrail:
		return refusalDisabled
	}
	return ""
}

// countProgram counts the program of a turn whose response this worker has stored.
func (h *Handlers) countProgram(t *turn, r *events.ToolResponse) {
	if t.Binding == nil || t.Binding.Program == nil {
		return
	}
	end := t.ended
	switch {
	case r.Code == events.CodeCancelled:
		h.Metrics.Program(t.Binding, string(flow.StatusCancelled), t.ran)
		return
	case end == nil && t.reject != nil:
		end = &programEnd{status: flow.StatusFailed, refusal: t.reject.refusal}
	case end == nil && (r.Code == events.CodeValidationFailed || r.Code == events.CodeGuardrail): // by the worker that has claimed the turn
		end = &programEnd{refusal: refusalInvalid}
	case end == nil || r.Code != "" && end.status != flow.StatusInvalid:
		end = &programEnd{status: flow.StatusFailed}
	}
	if end.refusal != "" {
		end.status = flow.StatusInvalid
		h.Metrics.Refusals.WithLabelValues(end.refusal).Inc()
	}
	h.Metrics.Program(t.Binding, string(end.status), t.ran)
}

// countStep counts a step whose response this worker has stored, unless it is an internal call.
func (p *programRun) countStep(s *step, end *program.End, took time.Duration) {
	if !s.stored || s.internal {
		return
	}
	if s.ended != nil && s.ended.refusal != "" {
		p.h.Metrics.Refusals.WithLabelValues(s.ended.refusal).Inc()
	}
	b := s.Binding
	if p.compiler.Tools.Binding(s.call.Tool) == nil {
		b = nil
	}
	p.h.Metrics.Step(b, stepStatus(end.Success, events.Code(end.Code)), took)
}

// countClosed counts a step that this worker has ended without its tool, unless it is an internal call. A call that cannot be read, nil, is not counted.
func (h *Handlers) countClosed(called *events.ToolCall, code events.Code) {
	if called == nil || events.IsInternalStep(called.Step) {
		return
	}
	set := h.Bindings()
	b := cmp.Or(set.StepTool(called.WorkflowName, called.Agent, called.ToolName), set.Bound(called.WorkflowName, called.Agent, called.ToolName))
	h.Metrics.Step(b, stepStatus(false, code), 0)
}

// stepStatus is the status of a step in metrics.
func stepStatus(success bool, code events.Code) string {
	switch {
	case success:
		return string(flow.StatusSuccess)
	case code.Known():
		return string(code)
	}
	return statusOther
}

// noteStored notes whether it is this worker that has stored the response of a step.
func (s *step) noteStored(response *idempotency.Record) {
	s.stored = response.Meta.Nonce == s.run.Hold().Nonce
}

// beginSpan begins the span of a call and returns the context with it, the traceparent that the tool gets, and a function for
// the outcome.
func (h *Handlers) beginSpan(ctx context.Context, t *turn, effect bindings.Effect, epoch int) (context.Context, string, func(engine.Outcome)) {
	call := run.Call(t.Binding, t.StructuredOutputReady, t.CallID)
	call.Trace, call.Epoch, call.Effect, call.Depth = t.traceparent(), epoch, string(effect), t.Depth
	ctx, call, end := h.Engine.Begin(ctx, call)
	return ctx, call.Trace, end
}

// observe has tracers and metrics notified of a step that begins. The function that it returns is called with its end, or with
// the error for which it has none here.
func (p *programRun) observe(ctx context.Context, s *step) (context.Context, func(end *program.End, err error)) {
	begun := time.Now()
	ctx, traceparent, ends := p.h.beginSpan(ctx, s.turn, s.Effect, p.d.Hold.Epoch)
	s.trace = traceparent
	return ctx, func(end *program.End, err error) {
		out := s.out
		out.Code, out.Message, out.Attempts, out.Stopped = events.Code(end.Code), end.Message, end.Attempts, err
		ends(out)
		if err == nil {
			p.countStep(s, end, time.Since(begun)-out.Paused)
		}
	}
}

// withTrace gives a tool the span of its step as its parent.
func (s *step) withTrace(call *tools.Call) *tools.Call {
	call.Trace = s.trace
	return call
}
