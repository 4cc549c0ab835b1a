// Package engine runs one tool call, phase by phase: invoke with a deadline and retries, then
// normalise what came back into the outcome that a tool_response carries. It knows no bus and
// no journal; a panic, a hang and a tool that ignores its context are all outcomes.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/tools"
)

// Defaults of [Options].
const (
	DefaultTimeout = time.Minute
	DefaultGrace   = time.Second
)

// Options of an [Engine]. The zero value is usable.
type Options struct {
	// Timeout bounds one attempt of a tool that names no timeout of its own. Defaults to
	// DefaultTimeout.
	Timeout time.Duration
	// Grace is how long a tool whose context ended may still take to return before it is
	// abandoned. Defaults to DefaultGrace.
	Grace time.Duration
	// OnAbandoned is called for each abandoned run, OnLate when one returns after all.
	OnAbandoned, OnLate func(tool string)
}

// Engine runs tool calls. It is safe for concurrent use.
type Engine struct{ o Options }

// New returns an engine.
func New(o Options) *Engine {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.OnAbandoned == nil {
		o.OnAbandoned = func(string) {}
	}
	if o.OnLate == nil {
		o.OnLate = func(string) {}
	}
	return &Engine{o: o}
}

// Policy is what a binding says about running its tool.
type Policy struct {
	MaxAttempts int           // of a tool that fails with a retryable error; 0 = 1
	Timeout     time.Duration // of one attempt; 0 = the engine's
}

// Run runs the call. If ctx ends before the tool has a result, the outcome's Stopped is the
// cause and the rest of it means nothing. An attempt that runs out of time is an unknown
// outcome and is never retried; only an error marked [tools.Retryable] is.
func (e *Engine) Run(ctx context.Context, tool tools.Tool, call *tools.Call, p Policy) Outcome {
	if p.Timeout <= 0 {
		p.Timeout = e.o.Timeout
	}
	start := time.Now()
	for attempt := 1; ; attempt++ {
		call.Attempt = attempt
		result, err := e.attempt(ctx, tool, call, p.Timeout)
		abandoned := errors.Is(err, errAbandoned)
		if err != nil && ctx.Err() != nil {
			return Outcome{Attempts: attempt, Duration: time.Since(start), Stopped: context.Cause(ctx), Abandoned: abandoned, Err: err}
		}
		if tools.IsRetryable(err) && attempt < p.MaxAttempts && sleep(ctx, Delay(attempt)) {
			continue
		}
		o := outcome(call.Name, result, err)
		o.Attempts, o.Duration, o.Abandoned = attempt, time.Since(start), abandoned
		return o
	}
}

type returned struct {
	result tools.Result
	err    error
}

// attempt runs the tool once in a goroutine of its own, so that one that ignores its context
// can be left behind.
func (e *Engine) attempt(ctx context.Context, tool tools.Tool, call *tools.Call, timeout time.Duration) (tools.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, events.ErrTimeout)
	defer cancel()
	done := make(chan returned, 1)
	go func() {
		var r returned
		defer func() {
			if p := recover(); p != nil {
				r = returned{err: &events.Error{
					Code: events.CodeToolError, Msg: fmt.Sprintf("panic: %v", p), Err: errors.New(string(debug.Stack())),
				}}
			}
			done <- r
		}()
		r.result, r.err = tool.Invoke(ctx, call)
	}()
	select {
	case r := <-done:
		return r.result, timeoutOf(ctx, r.err)
	case <-ctx.Done():
	}
	grace := time.NewTimer(e.o.Grace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.result, timeoutOf(ctx, r.err)
	case <-grace.C:
	}
	e.o.OnAbandoned(call.Name)
	go func() {
		<-done
		e.o.OnLate(call.Name)
	}()
	return tools.Result{}, timeoutOf(ctx, errAbandoned)
}

// errAbandoned is the error of an attempt whose tool has not returned.
var errAbandoned = errors.New("the tool ignored the end of its context and was left behind")

// timeoutOf gives an error that comes from the attempt's deadline its code.
func timeoutOf(ctx context.Context, err error) error {
	if err == nil || !errors.Is(context.Cause(ctx), events.ErrTimeout) {
		return err
	}
	cause := err
	if tools.IsRetryable(err) { // a tool that calls its timeout retryable is not believed
		cause = errors.New(err.Error())
	}
	return &events.Error{Code: events.CodeTimeout, Msg: "tool_error:timeout", Err: cause}
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

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// null returns the JSON value of a tool that returns nothing.
func null() json.RawMessage { return json.RawMessage("null") }
