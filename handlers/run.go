package handlers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/secrets"
	"github.com/oneturn/oneturn/internal/tools"
)

// run is one run of a tool in this process, and what its attempts share at the desk. A tool that
// never comes there pays for the struct alone.
type run struct {
	h      *Handlers
	t      *turn
	tools  context.Context //nolint:containedctx // that of the run's tool
	stop   context.CancelCauseFunc
	before *idempotency.Turn // what the journal held when the run began, nil for a new turn
	begun  time.Time         // by the clock of the server
	first  desk
	effect string // of the tool, as the claim pinned it

	secrets secrets.Scrubber // knows the secret answers that its tool was handed

	// gate is held for reading by all that is done at the desk, and for writing to park: nothing
	// is done meanwhile, and nothing can be afterwards.
	gate sync.RWMutex
	hold idempotency.Hold // written under gate and mu, read under either

	mu       sync.Mutex
	over     error             // why nothing can be done any more
	desk     *desk             // of the attempt
	kept     *idempotency.Kept // what the call has put up in all runs and attempts, nil until it is asked for
	vars     map[string]any    // context variables that were read for the tool, nil if none were
	waiting  waiting
	limited  limited
	progress progress
}

// errRunOver is what is said at the desk of a run whose tool has returned, or of an attempt that
// is over.
var errRunOver = errors.New("the call is over: nothing can be asked, shown or stored for it any more")

// Host implements [engine.Hosts].
func (r *run) Host(clock *engine.Clock) tools.Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := &r.first
	if r.desk != nil {
		r.abandon()
		next = &desk{}
	}
	next.run, next.clock = r, clock
	next.guard = guardedDesk{Host: next, h: r.h, t: r.t, scrub: &r.secrets}
	r.desk = next
	return &next.guard
}

// keeps returns what the call has put up in all its runs and attempts. The mutex is held.
func (r *run) keeps() *idempotency.Kept {
	if r.kept == nil {
		r.kept = r.before.Kept()
	}
	return r.kept
}

// do does something at a desk. What op reads and writes in the journal goes through [run.persist]:
// as long as the lease lasts, a write of unknown outcome is tried again, whatever becomes of the tool.
func (r *run) do(d *desk, op func(hold idempotency.Hold) error) error {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if err := r.closed(d); err != nil {
		return err
	}
	r.touch()
	defer r.touch()
	return op(r.hold)
}

// closed says why nothing can be done at a desk any more, nil while it can.
func (r *run) closed(d *desk) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over == nil && r.desk != d {
		return errRunOver
	}
	return r.over
}

// judge says what an error of the journal means. What can never be stored is the tool's to know;
// a code ends the turn; and after anything else the turn may be another run's.
func (r *run) judge(err error) error {
	var coded *events.Error
	switch {
	case err == nil:
		return nil
	case errorsRefused(err):
		return tooBig(err)
	case !errors.As(err, &coded):
		err = &lostError{err}
	}
	return r.end(err)
}

func tooBig(err error) error {
	return &events.Error{Code: events.CodeTooLarge, Op: "desk", Msg: "the journal cannot store it: make it smaller", Err: err}
}

// end ends the run and its tool, unless it has ended, and returns why it has.
func (r *run) end(why error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over == nil {
		r.over = why
		r.stop(why)
	}
	return r.over
}

// close ends the run once its tool has returned or was left behind, and returns the hold to go on
// with and what became of the run at the desk: nil if the tool's outcome counts.
func (r *run) close() (hold idempotency.Hold, why error) {
	r.gate.Lock() // whoever parks, or writes, has finished
	defer r.gate.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	why = r.over
	if why == nil {
		r.over = errRunOver
	}
	r.abandon()
	r.progress.close(r)
	if r.waiting.asked {
		r.t.asked = true
	}
	return r.hold, why
}

// held returns the hold, without the gate.
func (r *run) held() idempotency.Hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hold
}

// holds sets the hold. The gate is held.
func (r *run) holds(hold idempotency.Hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold = hold
}

// read notes the context variables that were read for the tool.
func (r *run) read(vars map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.vars = vars
}

// lostError is the end of a run that does not know what is stored, or whose turn is another's.
type lostError struct{ cause error }

// Error implements error.
func (e *lostError) Error() string { return fmt.Sprintf("the run has lost its turn: %s", e.cause) }

// Unwrap returns the cause.
func (e *lostError) Unwrap() error { return e.cause }

// hit is [turn.hit] with the effect that the claim has pinned.
func (r *run) hit(point string) {
	if failpoint.Enabled {
		failpoint.Hit(point, r.effect, r.t.key.String())
	}
}
