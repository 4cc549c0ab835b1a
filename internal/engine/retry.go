package engine

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/pause"
	"github.com/oneturn/oneturn/internal/tools"
)

// The phase invoke: attempts until one has a result or an error that may not be retried. again decides about the
// next one and the pause before it; a pause that is too long ends the call with an error that names it.

// longestPause bounds what a tool may ask to wait before it is tried again.
const longestPause = time.Minute

// invoke runs the tool until it has a result, or an error that is not to be tried again.
func (p *pipeline) invoke() bool {
	p.trace("tool.invoke.start")
	defer p.free()
	p.invoked = time.Now()
	defer func() { p.ran = time.Since(p.invoked) }()
	for {
		if p.ctx.Err() != nil { // a tool that ignores its context must not run without a caller
			return p.stop(p.ctx.Err())
		}
		r := p.attempt()
		if r.err == nil {
			p.result, p.effect = r.result, events.EffectHappened
			p.traceAttempts()
			return true
		}
		if p.ctx.Err() != nil {
			return p.stop(r.err)
		}
		p.effect = r.effect()
		r.err = ofTool(r.err)
		p.traceAttempt(&r)
		wait, again := p.again(&r)
		if !again {
			return p.failed(&r)
		}
		if pause.For(p.ctx, wait) != nil { // stopped while it was to be tried again: no outcome of the tool's
			return p.stop(r.err)
		}
	}
}

// attempt runs the tool once more.
func (p *pipeline) attempt() returned {
	if p.attempts++; p.attempts > 1 { // an abandoned attempt may still read its own
		call := *p.call
		p.call = &call
	}
	p.call.Attempt = p.attempts
	r := p.e.attempt(p.ctx, p.inv.Tool.Invoker, p.call, p.timeout(), p.inv.Hosts)
	p.entered = p.entered || r.entered
	p.abandoned = r.abandoned
	p.queued += r.waited
	p.paused += r.paused
	return r
}

func (p *pipeline) timeout() time.Duration {
	if p.inv.Tool.Timeout > 0 {
		return p.inv.Tool.Timeout
	}
	return p.e.o.Timeout
}

// again reports whether a failed attempt is followed by another one, and after which pause. If that pause
// is too long, the error names it.
func (p *pipeline) again(r *returned) (time.Duration, bool) {
	asked, retryable := tools.RetryDelay(r.err)
	if !retryable || isTimeout(r.err) || p.attempts >= p.inv.Tool.MaxAttempts {
		return 0, false
	}
	pause := max(p.e.o.Backoff(p.attempts), asked)
	deadline, bounded := p.ctx.Deadline()
	switch {
	case asked > longestPause:
		r.err = tooLate(r.err, fmt.Sprintf("it asks to be tried again in %s, and a call waits for %s at most", asked, longestPause))
	case bounded && time.Until(deadline) < pause:
		r.err = tooLate(r.err, fmt.Sprintf("it would be tried again in %s, and the time of the call ends before", pause))
	default:
		return pause, true
	}
	return 0, false
}

// ofTool is an error as a tool's own: a guardrail error from within the tool is not the
// engine's report that a guard of the call has refused it.
func ofTool(err error) error {
	if codeOf(err) == events.CodeGuardrail {
		return &events.Error{Code: events.CodeToolError, Msg: textOf(err), Err: err}
	}
	return err
}

func tooLate(err error, why string) error {
	code, text := classify(err)
	return &events.Error{Code: code, Msg: text + ": " + why, Err: err}
}

// failed ends the call with what its last attempt failed with.
func (p *pipeline) failed(r *returned) bool {
	p.fail(r.err)
	if r.timedOut {
		p.outcome.Content = fmt.Sprintf("Tool %s did not end within %s: its effect may or may not have happened.", p.call.Name, p.timeout())
	}
	return false
}

// Backoff between attempts.
const (
	firstDelay = 100 * time.Millisecond
	maxDelay   = 5 * time.Second
)

// Delay is how long to wait after a failed attempt, counted from 1: 100 ms, doubled each
// time up to 5 s, with up to half of it taken off at random.
func Delay(attempt int) time.Duration {
	d := maxDelay
	if attempt < 16 {
		d = min(firstDelay<<(max(attempt, 1)-1), maxDelay)
	}
	return d - rand.N(d/2+1)
}
