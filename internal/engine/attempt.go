package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/tools"
)

// One attempt: invoke calls the tool in a separate goroutine, await waits for it, at most a grace longer than its
// context lasts, and queued records when a call that waits for a process is entered. Everything that the
// retries need to know is in returned.

// Hosts gives each attempt of a call a separate host.
type Hosts interface {
	// Host returns the host of the next attempt, whose clock is given. The attempt before is over.
	Host(c *Clock) tools.Host
}

// returned is the end of an attempt.
type returned struct {
	result tools.Result
	err    error

	waited    time.Duration // in the queue
	paused    time.Duration // the clock was paused
	entered   bool          // the tool ran, or it may run yet
	timedOut  bool          // err is the end of the attempt's time
	abandoned bool          // the tool has not returned
}

// attempt runs the tool once. The time of a tool that queues begins when the call is entered, of other
// tools immediately.
func (e *Engine) attempt(ctx context.Context, tool tools.Invoker, call *tools.Call, timeout time.Duration, hosts Hosts) returned {
	clock := newClock(ctx, timeout)
	if hosts != nil {
		call.Host = hosts.Host(clock)
	}
	r := e.attemptBy(clock, tool, call)
	paused, early := clock.end()
	r.paused = paused
	r.waited -= early // for a person, not in the queue
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

// queued records when a call that may wait is entered.
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

// end adds to an attempt that is over how long it waited and whether it was entered. One with a result
// was entered, whatever the tool reported; an abandoned one may have been.
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

// invoke calls the tool in a separate goroutine, so that one that ignores its context can be abandoned.
func invoke(ctx context.Context, tool tools.Invoker, call *tools.Call) <-chan returned {
	done := make(chan returned, 1)
	go func() {
		r := returned{err: tools.Unknown(errVanished)}
		defer func() {
			if p := recover(); p != nil {
				r = returned{err: tools.Unknown(&events.Error{
					Code: events.CodeToolError, Msg: fmt.Sprintf("panic: %v", p), Err: &tools.PanicError{Value: p, Stack: debug.Stack()},
				})}
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
var errAbandoned = errors.New("the tool ignored the end of its context and was abandoned")

// after gives an error that comes from the attempt's deadline its code.
func (r returned) after(ctx context.Context) returned {
	if r.err == nil || !errors.Is(context.Cause(ctx), events.ErrTimeout) {
		return r
	}
	cause := r.err
	if tools.IsRetryable(cause) { // a tool that calls its timeout retryable counts as an unmarked timeout
		cause = errors.New(cause.Error())
	}
	r.err, r.timedOut = &events.Error{Code: events.CodeTimeout, Msg: ownTimeout, Err: cause}, true
	return r
}

// effect returns what is known of the effect of an attempt that has failed.
func (r returned) effect() events.EffectState {
	if r.timedOut || r.abandoned {
		return events.EffectInDoubt
	}
	return tools.EffectState(r.err)
}
