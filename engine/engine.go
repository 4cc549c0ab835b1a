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
	"sync"
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
	// Timeout bounds one attempt of a tool that names no timeout of its own, from when it is
	// entered: what a tool that queues waits for does not count. Defaults to DefaultTimeout.
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
	Timeout     time.Duration // of one attempt, from when the tool is entered; 0 = the engine's
	Desks       Desks         // of its attempts; nil = that of the call, if any
}

// Run runs the call. If ctx ends before the tool has a result, the outcome's Stopped is the
// cause and the rest of it means nothing but Entered. An attempt that runs out of time is an
// unknown outcome and is never retried; only an error marked [tools.Retryable] is.
func (e *Engine) Run(ctx context.Context, tool tools.Invoker, call *tools.Call, p Policy) Outcome {
	if p.Timeout <= 0 {
		p.Timeout = e.o.Timeout
	}
	start, entered, waited, stood := time.Now(), false, time.Duration(0), time.Duration(0)
	end := func(o Outcome, attempts int) Outcome {
		o.Attempts, o.Entered, o.Waited, o.Stood = attempts, entered, waited, stood
		o.Duration = time.Since(start) - waited - stood
		return o
	}
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil { // a tool that ignores its context must not run for nobody
			return end(Outcome{Stopped: context.Cause(ctx), Err: ctx.Err()}, attempt-1)
		}
		if attempt > 1 { // what the last one left behind may still look at its own
			again := *call
			call = &again
		}
		call.Attempt = attempt
		r := e.attempt(ctx, tool, call, p)
		entered = entered || r.entered
		waited += r.waited
		stood += r.stood
		if r.err != nil && ctx.Err() != nil {
			return end(Outcome{Stopped: context.Cause(ctx), Abandoned: r.abandoned, Err: r.err}, attempt)
		}
		if tools.IsRetryable(r.err) && attempt < p.MaxAttempts {
			if sleep(ctx, Delay(attempt)) {
				continue
			}
			// Stopped while it was to be tried again: no outcome of the tool's.
			return end(Outcome{Stopped: context.Cause(ctx), Err: r.err}, attempt)
		}
		o := outcome(call.Name, r.result, r.err)
		if r.timedOut {
			o.Content = fmt.Sprintf("Tool %s did not end within %s: its effect may or may not have happened.", call.Name, p.Timeout)
		}
		o.Abandoned = r.abandoned
		return end(o, attempt)
	}
}

// returned is the end of an attempt.
type returned struct {
	result tools.Result
	err    error

	waited    time.Duration // in the queue
	stood     time.Duration // the clock stood still
	entered   bool          // the tool ran, or it may run yet
	timedOut  bool          // err is the end of the attempt's time
	abandoned bool          // the tool has not returned
}

// attempt runs the tool once. The time of a tool that queues begins when the call is entered,
// that of others at once.
func (e *Engine) attempt(ctx context.Context, tool tools.Invoker, call *tools.Call, p Policy) returned {
	clock := newClock(ctx, p.Timeout)
	if p.Desks != nil {
		call.Desk = p.Desks.Desk(clock)
	}
	r := e.attemptBy(clock, tool, call)
	r.stood = clock.end()
	return r
}

func (e *Engine) attemptBy(clock *Clock, tool tools.Invoker, call *tools.Call) returned {
	if !tools.Queues(tool) {
		clock.start()
		r := e.await(clock, invoke(clock, tool, call), call.Name)
		r.entered = true
		return r
	}
	q := newQueued()
	call.Entered = q.enter
	done := invoke(clock, tool, call)
	select {
	case <-q.entered:
		clock.start()
		return q.end(e.await(clock, done, call.Name))
	case r := <-done:
		return q.end(r)
	case <-clock.Done():
	}
	return q.end(e.await(clock, done, call.Name))
}

// queued tells when a call that may wait is entered.
type queued struct {
	start   time.Time
	enter   func()
	entered chan struct{}
	waited  time.Duration // to be read once entered is closed
}

func newQueued() *queued {
	q := &queued{start: time.Now(), entered: make(chan struct{})}
	q.enter = sync.OnceFunc(func() {
		q.waited = time.Since(q.start)
		close(q.entered)
	})
	return q
}

// end says of an attempt that is over how long it waited and whether it was entered. One that
// has a result was, whatever it says; one that was left behind may be.
func (q *queued) end(r returned) returned {
	entered := closed(q.entered)
	switch {
	case entered:
		r.waited = q.waited
	case r.err != nil:
		r.waited = time.Since(q.start)
	}
	r.entered = entered || r.err == nil || r.abandoned
	return r
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// invoke calls the tool in a goroutine of its own, so that one that ignores its context can be
// left behind.
func invoke(ctx context.Context, tool tools.Invoker, call *tools.Call) <-chan returned {
	done := make(chan returned, 1)
	go func() {
		r := returned{err: errVanished}
		defer func() {
			if p := recover(); p != nil {
				r = returned{err: &events.Error{
					Code: events.CodeToolError, Msg: fmt.Sprintf("panic: %v", p), Err: errors.New(string(debug.Stack())),
				}}
			}
			done <- r
		}()
		result, err := tool.Invoke(ctx, call)
		if err != nil {
			_ = err.Error() // an error that panics when it is looked at is the tool's panic
		}
		r.result, r.err = result, err
	}()
	return done
}

// await waits for a tool to return, for a grace only once ctx has ended.
func (e *Engine) await(ctx context.Context, done <-chan returned, tool string) returned {
	select {
	case r := <-done:
		return r.after(ctx)
	case <-ctx.Done():
	}
	grace := time.NewTimer(e.o.Grace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r.after(ctx)
	case <-grace.C:
	}
	e.o.OnAbandoned(tool)
	go func() {
		<-done
		e.o.OnLate(tool)
	}()
	return returned{err: errAbandoned, abandoned: true}.after(ctx)
}

// errVanished is the error of a tool that ended its goroutine instead of returning.
var errVanished = errors.New("the tool ended its goroutine (runtime.Goexit) instead of returning")

// errAbandoned is the error of an attempt whose tool has not returned.
var errAbandoned = errors.New("the tool ignored the end of its context and was left behind")

// after gives an error that comes from the attempt's deadline its code.
func (r returned) after(ctx context.Context) returned {
	if r.err == nil || !errors.Is(context.Cause(ctx), events.ErrTimeout) {
		return r
	}
	cause := r.err
	if tools.IsRetryable(cause) { // a tool that calls its timeout retryable is not believed
		cause = errors.New(cause.Error())
	}
	r.err, r.timedOut = &events.Error{Code: events.CodeTimeout, Msg: "tool_error:timeout", Err: cause}, true
	return r
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
