package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings/model"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/guards"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// pipeline is one call on its way through the phases, in the order of [Engine.Do]: begin, one method for each
// phase (invoke is in retry.go), end. A phase that is not followed by another one has set the outcome, by fail,
// stop or success.
type pipeline struct {
	e    *Engine
	ctx  context.Context //nolint:containedctx // the context of Do, for its phases
	inv  Invocation
	call *tools.Call

	key     CacheKey
	keyed   bool   // results of the call may be reused
	release func() // releases what the call takes of the limiter
	result  tools.Result

	attempts       int
	entered        bool
	abandoned      bool
	effect         events.EffectState
	invoked        time.Time     // when the first attempt began
	ran            time.Duration // from then to the end of the last one
	queued, paused time.Duration // of it
	limited        time.Duration // waited for a limit
	outcome        Outcome
	spanEnd        func(Outcome)
}

func (p *pipeline) begin() {
	if s, ok := p.e.o.Tracer.(Spans); ok && !p.inv.Begun {
		p.ctx, p.call, p.spanEnd = s.Begin(p.ctx, p.call)
	}
}

// end completes the outcome.
func (p *pipeline) end() Outcome {
	o := &p.outcome
	o.ToolName, o.Attempts, o.Entered, o.Abandoned, o.EffectState = p.call.Name, p.attempts, p.entered, p.abandoned, p.effect
	if !p.entered {
		o.Attempts = 0 // the tool was not tried, whatever was done to reach it
	}
	o.Waited, o.Paused, o.Duration = p.limited+p.queued, p.paused, p.ran-p.queued-p.paused
	if p.spanEnd != nil {
		p.spanEnd(o.forTracers(p.call))
	}
	return p.outcome
}

// fail ends the call with an error and returns false.
func (p *pipeline) fail(err error) bool {
	p.outcome = Failure(p.call.Name, err)
	return false
}

// stop ends the call because its context has ended, and returns false.
func (p *pipeline) stop(err error) bool {
	p.outcome = Outcome{Stopped: context.Cause(p.ctx), Err: err}
	return false
}

// resolve checks that the call has a tool: the caller has found it.
func (p *pipeline) resolve() bool {
	p.trace("tool.resolve.start")
	if p.inv.Tool.Invoker == nil {
		p.trace("tool.resolve.fail")
		return p.fail(&events.Error{Code: events.CodeUnknownTool, Msg: fmt.Sprintf("there is no tool %.80q", p.call.Name)})
	}
	p.trace("tool.resolve.ok")
	return true
}

// checkArgs completes, coerces and checks the arguments by the schema of the tool.
func (p *pipeline) checkArgs() bool {
	p.trace("args.parse.start")
	if p.inv.Tool.Input != nil {
		args := p.call.Args
		if args == nil {
			args = map[string]any{}
		}
		conformed, changed, violations := p.inv.Tool.Input.Conform(args)
		if len(violations) > 0 {
			err := &events.Error{
				Code: events.CodeBadArgs, Msg: model.Reason(violations) + p.withoutParameter(violations[0]), Err: &model.Refused{Model: p.call.Name, Violations: violations},
			}
			p.traceError("args.parse.fail", err)
			return p.fail(err)
		}
		if changed { // the caller's call stays as it is
			call := *p.call
			call.Args, call.ArgsJSON = conformed, nil
			p.call = &call
		}
	}
	p.traceKeys()
	return true
}

// withoutParameter explains why an argument is missing that has no parameter: it may well have been given.
func (p *pipeline) withoutParameter(v model.Violation) string {
	name := strings.TrimPrefix(v.Path, "/")
	if v.Rule != model.RuleRequired || !slices.Contains(p.inv.Tool.Unplaced, name) {
		return ""
	}
	return " The function has no parameter " + name + ", so what is given for it does not reach it."
}

// cached looks whether there is a result already, and ends the call with it.
func (p *pipeline) cached() bool {
	if p.e.o.Cache == nil || p.inv.Tool.Cache.TTL <= 0 {
		return false
	}
	if p.key, p.keyed = p.cacheKey(); !p.keyed {
		return false
	}
	value, hit := p.e.o.Cache.Get(p.key)
	if !hit {
		p.trace("cache.miss")
		return false
	}
	p.trace("cache.hit")
	p.outcome = success(p.call.Name, tools.Result{Value: value})
	p.outcome.Cached = true
	return true
}

func (p *pipeline) guardInput() bool {
	p.trace("guard.input.start")
	if err := guards.AdmitInput(p.ctx, p.inv.Tool.Guards, p.call); err != nil {
		return p.blocked("guard.input.block", "A guard refused the call of tool %s: %s", err)
	}
	p.trace("guard.input.ok")
	return true
}

func (p *pipeline) guardOutput() bool {
	p.trace("guard.output.start")
	ctx := p.ctx
	if len(p.inv.Tool.Guards) > 0 { // the tool has returned: its result counts, if it may, also when the call has to end
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), p.timeout())
		defer cancel()
	}
	if err := guards.AdmitOutput(ctx, p.inv.Tool.Guards, p.call, p.result.Value); err != nil {
		return p.blocked("guard.output.block", "Tool %s ran, but a guard refused its result: %s", err)
	}
	p.trace("guard.output.ok")
	return true
}

func (p *pipeline) blocked(event, content string, err error) bool {
	reason := "a guard did not decide in time"
	var refusal *guards.Refusal
	switch {
	case errors.As(err, &refusal):
		reason = refusal.Reason
	case !p.entered: // a guard that was interrupted has decided nothing
		return p.stop(err)
	}
	p.traceReason(event, reason)
	p.fail(&events.Error{Code: events.CodeGuardrail, Msg: reason, Err: err})
	p.outcome.Content = events.Clip(fmt.Sprintf(content, p.call.Name, reason))
	return false
}

// mayBegin waits until the limits of the tool let the call begin.
func (p *pipeline) mayBegin() bool {
	limits := &p.inv.Tool.Limits
	if p.e.o.Limiter == nil || limits.Tool == (target.Limit{}) && limits.Tenant == (target.Limit{}) {
		return true
	}
	begun := time.Now()
	if p.inv.OnLimitWait != nil {
		p.inv.OnLimitWait(true)
		defer p.inv.OnLimitWait(false)
	}
	release, err := p.e.o.Limiter.Wait(p.ctx, p.id(), p.call.Turn.App, *limits)
	p.limited = time.Since(begun)
	switch {
	case err == nil:
		p.release = release
		return true
	case p.ctx.Err() != nil:
		return p.stop(err)
	}
	return p.fail(err)
}

// free releases what the call takes of its limits.
func (p *pipeline) free() {
	if p.release != nil {
		p.release()
	}
}

// normalise makes the outcome of what the tool has returned.
func (p *pipeline) normalise() bool {
	value := &p.result.Value
	if len(*value) == 0 {
		*value = null()
	}
	if limit := p.inv.Tool.Limits.Output; limit > 0 && len(*value) > limit {
		return p.fail(&events.Error{Code: events.CodeTooLarge, Msg: fmt.Sprintf(
			"tool %s ran, but its result has %d bytes and its limit is %d (limits.output)", p.call.Name, len(*value), limit)})
	}
	if p.inv.Tool.Output != nil {
		conformed, err := conform(p.inv.Tool.Output, *value)
		if err != nil {
			return p.fail(err)
		}
		*value = conformed
	}
	p.outcome = success(p.call.Name, p.result)
	return true
}

// conform returns a result as the schema that its tool declares has it: coerced and completed as
// arguments are. The result that was checked is the one that is used.
func conform(schema *model.Value, value json.RawMessage) (json.RawMessage, error) {
	conformed, violations, err := schema.ConformJSON(value)
	if err != nil {
		return nil, &events.Error{Code: events.CodeToolError, Msg: "the tool ran, but its result is not JSON: " + textOf(err), Err: err}
	}
	if len(violations) > 0 {
		return nil, &events.Error{
			Code: events.CodeToolError, Msg: "the tool ran, but its result does not fit its output schema: " + model.Summary(violations),
			Err: &model.Refused{Violations: violations},
		}
	}
	return conformed, nil
}

// store keeps the result for calls like this one, unless it is more than a function of the
// arguments: it changed context variables, came from people, or reports a failure.
func (p *pipeline) store() {
	o := &p.outcome
	if !p.keyed || !o.Success || len(o.Set) > 0 || len(o.Remove) > 0 || p.paused > 0 || p.call.Secrets.Active() {
		return
	}
	p.e.o.Cache.Put(p.key, bytes.Clone(o.Payload), p.inv.Tool.Cache.TTL)
	p.trace("cache.store")
}
