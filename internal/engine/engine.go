package engine

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/defaults"
	"github.com/oneturn/oneturn/internal/tools"
)

// The engine and the order of the phases: Do runs a call in its caller, Go in a separate goroutine with a Future.
// Both return outcomes, never errors.

// Defaults of [Options].
const (
	DefaultTimeout = defaults.ToolTimeout
	DefaultGrace   = time.Second
)

// Options of an [Engine]. The zero value is usable.
type Options struct {
	// Timeout bounds one attempt of a tool without a timeout, from when it is entered: time in the queue
	// of a tool does not count. Defaults to DefaultTimeout.
	Timeout time.Duration
	// Grace is how long a tool whose context ended may still take to return before it is
	// abandoned. Defaults to DefaultGrace.
	Grace time.Duration
	// Backoff is how long to wait after a failed attempt, counted from 1. Defaults to [Delay].
	Backoff func(attempt int) time.Duration
	// Cache keeps the results of tools that have one; nil means no cache.
	Cache Cache
	// Limiter makes calls of tools with limits wait; nil limits nothing but the size of results.
	Limiter Limiter
	// Tracer is notified of the phases of every call; nil costs nothing.
	Tracer Tracer
	// OnAbandoned is called for each abandoned run, OnLate when one returns after all.
	OnAbandoned, OnLate func(tool string)
}

// Engine runs calls of tools. It is safe for concurrent use.
type Engine struct{ o Options }

// New returns an engine.
func New(o Options) *Engine {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.Backoff == nil {
		o.Backoff = Delay
	}
	if o.OnAbandoned == nil {
		o.OnAbandoned = func(string) {}
	}
	if o.OnLate == nil {
		o.OnLate = func(string) {}
	}
	return &Engine{o: o}
}

// Emit notifies the tracer of something that is not a phase of a call.
func (e *Engine) Emit(ctx context.Context, name string, attrs ...slog.Attr) {
	if e.o.Tracer != nil {
		e.o.Tracer.Emit(ctx, name, attrs...)
	}
}

// Begin begins the span of something that is more than one call of [Engine.Do]: a program, or a step with its records. It
// returns the context and the call to continue with, and a function for the outcome, to be called once.
func (e *Engine) Begin(ctx context.Context, call *tools.Call) (context.Context, *tools.Call, func(Outcome)) {
	s, ok := e.o.Tracer.(Spans)
	if !ok {
		return ctx, call, func(Outcome) {}
	}
	ctx, call, end := s.Begin(ctx, call)
	return ctx, call, func(o Outcome) {
		if end != nil {
			end(o.forTracers(call))
		}
	}
}

// Invocation is one call to run.
type Invocation struct {
	Call *tools.Call // the caller and the arguments; the engine sets its attempt
	Tool Tool        // what runs it; without an Invoker the call ends as unknown_tool
	// Begun is set for a call whose span has begun, see [Engine.Begin].
	Begun bool
	// Hosts gives each attempt its host; nil leaves the host of the call, if any.
	Hosts Hosts
	// OnLimitWait is called with true when the call begins to wait for a limit, and with false when that
	// ends; may be nil.
	OnLimitWait func(begins bool)
}

// Do runs a call. It returns no error: the outcome has it, also for a panic of a tool or guard. If ctx
// ends before there is an outcome, its Stopped is the cause, and of the rest only Entered is valid.
//
// An attempt that runs out of time is an unknown outcome and is never repeated; only an error
// marked [tools.Retryable] is.
func (e *Engine) Do(ctx context.Context, inv Invocation) Outcome {
	if inv.Call == nil {
		inv.Call = &tools.Call{}
	}
	p := &pipeline{e: e, ctx: ctx, inv: inv, call: inv.Call}
	p.begin()
	switch { // each phase reports whether there is a next one
	case !p.resolve():
	case !p.checkArgs():
	case p.cached():
	case !p.guardInput():
	case !p.mayBegin():
	case !p.invoke():
	case !p.normalise():
	case !p.guardOutput():
	default:
		p.store()
	}
	return p.end()
}

// Go is [Engine.Do] in a separate goroutine.
func (e *Engine) Go(ctx context.Context, inv Invocation) *Future {
	f, name := &Future{done: make(chan struct{})}, ""
	if inv.Call != nil {
		name = inv.Call.Name
	}
	go func() {
		defer close(f.done)
		defer func() {
			if v := recover(); v != nil { // of a cache, limiter or tracer: the tools' and guards' own are outcomes
				f.outcome = Failure(name, &events.Error{
					Code: events.CodeToolError, Msg: fmt.Sprintf("panic: %v", v), Err: &tools.PanicError{Value: v, Stack: debug.Stack()},
				})
			}
		}()
		f.outcome = e.Do(ctx, inv)
	}()
	return f
}

// Future is the outcome of a call that is under way.
type Future struct {
	done    chan struct{}
	outcome Outcome // once done is closed
}

// Wait returns the outcome of the call, or one that was stopped if ctx ends before. The call itself
// ends with its own context; waiting can be repeated.
func (f *Future) Wait(ctx context.Context) Outcome {
	select {
	case <-f.done:
		return f.outcome
	case <-ctx.Done():
		return Outcome{Stopped: context.Cause(ctx), Entered: true, Err: ctx.Err()}
	}
}
