package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/redact"
	"github.com/oneturn/oneturn/internal/tools"
)

// This file has the state of a run, its hosts, its end (Close, end), and do, through which every operation of a host
// writes to the journal.

// Run is one run of a tool in this process, and what its attempts share. Each attempt gets a new [tools.Host]. A
// tool that does not use its host costs no more than the struct. The steps of a program have a run each, which share the hold
// and the parking of their turn.
type Run struct {
	*shared
	own shared // of the turn's own call; the runs of steps have the one of their turn

	reg    *Registry
	cfg    *Config
	t      *Turn
	tool   context.Context //nolint:containedctx // the context of the tool
	stop   context.CancelCauseFunc
	before *idempotency.Turn // what the journal held when the run began, nil for a new turn
	begun  time.Time         // by the clock of the server
	first  host              // of the first attempt
	effect string            // of the tool, as the claim pinned it

	// onQuestion is called when a step begins to wait for people, nil for the turn's own call. The runner of the program may
	// start another step then, so it decides by [Run.Rest] whether the step still counts as busy.
	onQuestion func()

	// Guarded by mu.
	closed    bool              // its tool has returned
	failed    error             // of a step: why it has ended, while the other runs of the turn continue
	reported  error             // why the run is over, as a host has reported to its tool
	busyNow   bool              // it counts as busy
	rests     bool              // its tool is the runner of a program, which has nothing to start
	stepsWait bool              // and each step of that program that runs waits for people
	host      *host             // of the current attempt
	names     *idempotency.Kept // questions, surfaces and steps of all runs of the call, nil until they are needed
	vars      map[string]any    // context variables that were read for the tool, nil if none were
	questions openQuestions
	limited   limitWait
	progress  progress
}

// errRunOver is returned by the host of a run whose tool has returned, or of an attempt that is over.
var errRunOver = errors.New("the call is over: nothing can be asked, shown or stored for it any more")

// Host implements [engine.Hosts].
func (r *Run) Host(clock *engine.Clock) tools.Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &r.first
	if r.host != nil {
		r.abandonQuestions()
		next = &host{}
	}
	next.run, next.clock = r, clock
	next.guard = redactingHost{Host: next, run: r, scrub: &r.secrets}
	r.host = next
	return &next.guard
}

// Secrets returns what redacts the secret answers that the tool has received.
func (r *Run) Secrets() *redact.SecretAnswers { return &r.secrets }

// Hold returns the current hold of the run on its call.
func (r *Run) Hold() idempotency.Hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.callHold()
}

// callHold is Hold for a caller that has the gate or the mutex.
func (r *Run) callHold() idempotency.Hold {
	if r == r.root {
		return r.hold
	}
	return r.hold.ForStep(r.t.Key.Call, r.effect)
}

// setHold sets the hold. The gate is held.
func (r *Run) setHold(hold idempotency.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold = hold
}

// KeepContext keeps the context variables that were read for the tool, so that a later run of it gets the same.
func (r *Run) KeepContext(vars map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vars = vars
}

// Close ends the run when its tool has returned or was abandoned, and returns the hold, and why the run had ended
// before: nil if the outcome of the tool counts.
func (r *Run) Close() (hold idempotency.Hold, why error) {
	r.cfg.Timing.Lock(&r.gate) // parking and writes have finished
	defer r.gate.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	why = r.over
	r.closed = true
	if why == nil && r == r.root {
		r.over = errRunOver
	}
	r.abandonQuestions()
	r.progress.close(r)
	if r.questions.asked {
		r.t.Asked, r.root.t.Asked = true, true
	}
	return r.callHold(), why
}

// end ends all runs of the turn and their tools, unless they have ended, and returns why they have. What only a step does wrong
// ends its own run. The tool of a step that has ended, and was abandoned, ends nothing.
func (r *Run) end(why error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended() != nil:
	case r.closed:
		return errRunOver
	case r != r.root && failsStep(why):
		r.failed = why
		r.stop(why)
	default:
		r.over = why
		r.root.stop(why)
	}
	return r.ended()
}

// ended returns why the run has ended before its tool has returned, nil if it has not. The tool gets this error. The mutex is held.
func (r *Run) ended() error {
	why := r.over
	if why == nil {
		why = r.failed
	}
	if why != nil && !r.closed {
		r.reported = why
	}
	return why
}

// failsStep reports whether what ends a run is the matter of its call: the turn is held, was not cancelled, and its records can be read.
func failsStep(why error) bool {
	coded, ok := errors.AsType[*events.Error](why)
	return ok && coded.Code != events.CodeCancelled && coded.Code != events.CodeStateCorrupt
}

// Reported returns why the run is over, if a host of it has reported that to its tool, else nil. What the tool of a step returns after that does not
// count.
func (r *Run) Reported() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reported
}

// refuses returns why a host refuses to do anything, nil while it does not.
func (r *Run) refuses(h *host) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.ended(); why != nil {
		return why
	}
	if r.closed || r.host != h {
		return errRunOver
	}
	return nil
}

// do runs an operation of a host. What op reads and writes in the journal goes through [Run.persist]:
// as long as the lease lasts, a write of unknown outcome is retried, whatever the tool does meanwhile.
func (r *Run) do(h *host, op func(hold idempotency.Hold) error) error {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if err := r.refuses(h); err != nil {
		return err
	}
	r.touch()
	defer r.touch()
	return op(r.callHold())
}

// touch notes that the host is used.
func (r *Run) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.touched = time.Now()
}

// usedNames returns the questions, surfaces and steps of all runs and attempts of the call. The mutex is held.
func (r *Run) usedNames() *idempotency.Kept {
	if r.names == nil {
		r.names = r.before.CallOf(r.t.Key).Kept()
	}
	return r.names
}

// classify decides on an error of the journal. One of what can never be stored is returned to the tool. Any other
// ends the run: a coded one ends the turn or the step too, and after one that is not coded another run may have the turn.
func (r *Run) classify(err error) error {
	var coded *events.Error
	switch {
	case err == nil:
		return nil
	case Unstorable(err):
		return tooLargeToStore(err)
	case !errors.As(err, &coded):
		err = &lostError{err}
	}
	return r.end(err)
}

// Unstorable reports whether an error means that something can never be stored.
func Unstorable(err error) bool {
	return errors.Is(err, idempotency.ErrRefused) || errors.Is(err, events.ErrTooLarge)
}

func tooLargeToStore(err error) error {
	return &events.Error{Code: events.CodeTooLarge, Op: "host", Msg: "the journal cannot store it: make it smaller", Err: err}
}

// lostError ends a run that does not know what is stored, or whose turn another run has.
type lostError struct{ cause error }

// Error implements error.
func (e *lostError) Error() string { return fmt.Sprintf("the run has lost its turn: %s", e.cause) }

// Unwrap returns the cause.
func (e *lostError) Unwrap() error { return e.cause }

// live publishes an event that is not stored. It is delivered at most once, so a failure is only logged.
func (r *Run) live(kind string, event []byte) {
	if err := r.cfg.Live(r.cfg.Space.Live(r.t.App, r.t.Chat, kind), event); err != nil {
		r.cfg.Logger.Debug("a live event could not be published", "kind", kind, "chat", r.t.Chat, "turn", r.t.CallID, "err", err)
	}
}

// hit is [Turn.Hit] with the effect that the claim has pinned.
func (r *Run) hit(point string) {
	if failpoint.Enabled {
		failpoint.Hit(point, r.effect, r.t.Key.String())
	}
}
