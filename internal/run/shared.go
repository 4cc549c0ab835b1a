package run

import (
	"slices"
	"sync"
	"time"

	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/redact"
)

// A turn is held, parked and lost as a whole. For a turn whose tool is a program, which is several calls at a time, its runs
// share what this file has: the hold, the end, and whether it only waits for people. A turn that is one
// call has one run, which shares with none.

// shared is what the runs of a turn share. Whatever a host does in the journal holds gate for reading. Parking holds it for
// writing: the state that is parked does not change meanwhile, and afterwards all runs are over.
type shared struct {
	root *Run // of the turn's own call

	gate sync.RWMutex
	hold idempotency.Hold // written under gate and mu, read under either

	mu      sync.Mutex
	over    error  // why the hosts of all runs refuse to do anything, nil while they do not
	calls   []*Run // all runs, the root first
	only    [1]*Run
	busy    int32 // runs that do something else than wait for people; the turn can be parked at 0
	waits   bool  // none is busy, and a question is open
	waiting waiting
	records int                  // of questions, surfaces and steps, or that these may still get
	secrets redact.SecretAnswers // knows the secret answers that the tools have received

	// onWait are called when the turn begins to wait for people, and when that ends.
	onWait []func(waits bool)
}

// waiting is the state of a turn that waits for people. It is guarded by the mutex.
type waiting struct {
	touched      time.Time // when a host was used last
	timer        Timer     // of the next attempt to park
	announced    bool      // frontends know that the turn waits
	counted      bool      // the turn is one of those that wait and can be parked
	slotReleased bool      // it does not use its slot
	overLimit    bool      // too many turns wait: it parks immediately
}

// isBusy counts a run as busy, or not. The mutex is held.
func (r *Run) isBusy(busy bool) {
	if r.busyNow == busy {
		return
	}
	r.busyNow = busy
	if busy {
		r.busy++
	} else {
		r.busy--
	}
	switch open := r.open(); {
	case r.waits && (r.busy > 0 || open == 0):
		r.waits = false
		r.endWait()
	case !r.waits && r.busy == 0 && open > 0:
		r.waits = true
		r.beginWait()
	}
}

// open returns how many questions of the turn are open. The mutex is held.
func (s *shared) open() int {
	n := 0
	for _, r := range s.calls {
		n += r.questions.displayed
	}
	return n
}

// parkable reports whether the turn may end while no tool of it is entered again: none of its calls that wait is unsafe. The mutex
// is held.
func (s *shared) parkable() bool {
	return !slices.ContainsFunc(s.calls, func(r *Run) bool { return !r.reenterable() && (r.questions.displayed > 0 || len(s.calls) == 1) })
}

// remove removes the run of a step that is over. The mutex is held.
func (s *shared) remove(r *Run) {
	s.calls = slices.DeleteFunc(s.calls, func(c *Run) bool { return c == r })
}
