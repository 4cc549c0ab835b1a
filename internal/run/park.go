package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/idempotency"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/throttle"
	"github.com/oneturn/oneturn/internal/tools"
)

// A turn whose tool waits for people is parked when its run has been idle for the configured time: the journal gets
// what another run needs (parked_state.go), this run ends with [tools.ErrParked], and its message is acknowledged. An
// answer then has the tool run again, in this process or another. A tool with effect unsafe must not run again: its
// run waits in memory, and there is a budget for those.

// parkRetry is how long a run that was notified while it was about to park gives its tool to read the answer, when it
// parks immediately otherwise.
const parkRetry = 20 * time.Millisecond

// reenterable reports whether the tool may be entered again, so that its run may end while the turn continues.
func (r *Run) reenterable() bool {
	return r.effect != "" && r.effect != string(bindings.EffectUnsafe)
}

// beginWait releases the slot of a turn that begins to wait for people, and sets the time to park. The mutex is held.
func (s *shared) beginWait() {
	w, r := &s.waiting, s.root
	g := r.reg
	if w.counted = s.parkable(); w.counted {
		n := g.parkable.Add(1)
		w.overLimit = n > g.mayWait()
	} else {
		for _, call := range s.calls {
			if !call.reenterable() && call.questions.displayed > 0 {
				g.warnUnsafe(call.t)
			}
		}
	}
	if !w.overLimit && r.t.Message.Slot != nil {
		w.slotReleased = true
		r.t.Message.Slot.Release()
		r.cfg.Metrics.InFlight.Dec()
	}
	for _, f := range s.onWait {
		f(true)
	}
	delay := r.cfg.ParkAfter
	if s.parksNow() {
		delay = 0
	}
	w.timer = r.cfg.Timing.AfterFunc(delay, r.park)
}

// endWait gives a turn its slot again that does not wait for people any more. The mutex is held.
func (s *shared) endWait() {
	w, r := &s.waiting, s.root
	w.timer.Stop()
	if w.slotReleased {
		w.slotReleased = false
		r.t.Message.Slot.Reacquire()
		r.cfg.Metrics.InFlight.Inc()
	}
	if w.counted {
		w.counted = false
		r.reg.parkable.Add(-1)
	}
	for _, f := range s.onWait {
		f(false)
	}
}

// reserve takes a place for a run that is about to ask and must not be parked: it keeps its message as long as people
// take to answer. It is called before each question, and [Run.unreserve] after it.
func (r *Run) reserve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.questions
	if !w.reserved && !r.reenterable() {
		if !r.reg.unparkable.Take(r.t.Key.App) {
			r.reg.warn(r.t, "a question is refused: the worker keeps the maximum number of turns of the tenant in memory",
				"app", throttle.Cut(r.t.App), "chat", throttle.Cut(r.t.Chat), "turn", throttle.Cut(r.t.CallID))
			return &events.Error{
				Code: events.CodeToolError, Op: "ask", Err: tools.ErrTooManyWaiting, Msg: fmt.Sprintf(
					"the question was not asked: too many turns of tenant %.80q with tools of effect unsafe wait for people in the memory of this worker; "+
						"set effect: replay in its manifest, or send the turn again later", r.t.App),
			}
		}
		w.reserved = true
	}
	w.askCalls++
	return nil
}

func (r *Run) unreserve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.questions.askCalls--
	r.freePlace()
}

// freePlace frees the place of a run that neither asks nor waits for people any more. The mutex is held.
func (r *Run) freePlace() {
	if w := &r.questions; w.reserved && w.askCalls == 0 && w.displayed == 0 {
		w.reserved = false
		r.reg.unparkable.Free(r.t.Key.App)
	}
}

// parksNow reports whether a turn that waits parks without waiting any longer. The mutex is held.
func (s *shared) parksNow() bool {
	return s.parkable() && (s.waiting.overLimit || s.root.reg.draining.Load())
}

// park ends the runs of a turn if they only wait, and have done so for long enough. It is called for the turn's own run.
func (r *Run) park() {
	if !r.mayBeParked() { // the gate may be held for as long as the server is away
		r.mayPark()
		return
	}
	r.gate.Lock()
	defer r.gate.Unlock()
	open := r.mayPark()
	if len(open) == 0 {
		return
	}
	ctx := r.t.Message.Held
	state, err := r.state(ctx)
	if err != nil {
		r.cannotPark(err)
		return
	}
	slices.SortFunc(open, func(a, b idempotency.QuestionRef) int { return strings.Compare(a.String(), b.String()) })
	r.hit(failpoint.BeforePark)
	hold := r.hold
	parked, err := r.cfg.Journal.Park(ctx, &hold, open, state)
	r.setHold(hold)
	switch {
	case Unstorable(err):
		r.cannotPark(err)
	case err != nil:
		_ = r.classify(err)
	case parked:
		r.hit(failpoint.AfterPark)
		r.cfg.Metrics.Parked.Inc()
		r.cfg.Logger.With(r.t.Attrs()...).Debug("parked", "questions", len(open), "epoch", r.hold.Epoch)
		r.announce()
		_ = r.end(tools.ErrParked)
	default: // answered meanwhile
		r.notifyAll()
		r.parkIn(max(r.cfg.ParkAfter, parkRetry))
	}
}

// cannotPark has a run wait in memory whose state cannot be stored.
func (r *Run) cannotPark(err error) {
	r.reg.warn(r.t, "the turn cannot be parked; it waits in memory", r.t.Attrs("err", events.LogText(err))...)
	r.parkIn(max(r.cfg.ParkAfter, firstPoll))
}

// mayBeParked is parkable for a caller without the mutex.
func (s *shared) mayBeParked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parkable()
}

// mayPark returns the open questions if the turn has to be parked now. Otherwise it sets the timer.
func (s *shared) mayPark() []idempotency.QuestionRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.waiting
	if s.over != nil || !s.waits {
		return nil
	}
	if quiet := s.root.cfg.ParkAfter - time.Since(w.touched); quiet > 0 && !s.parksNow() {
		w.timer.Reset(quiet)
		return nil
	}
	if !s.parkable() {
		s.root.announceWaiting()
		return nil
	}
	var open []idempotency.QuestionRef
	for _, call := range s.calls {
		if call.failed != nil { // it stops to wait now
			return nil
		}
		later := call.parksLater()
		if later > 0 {
			w.timer.Reset(later)
			return nil
		}
		for _, q := range call.questions.waiting {
			if q.displayed {
				open = append(open, idempotency.QuestionRef{Call: call.t.Key.Call, Token: q.token})
			}
		}
	}
	return open
}

// parksLater returns how long the call of a turn that waits keeps it from being parked. The mutex is held.
func (r *Run) parksLater() time.Duration {
	if r.host != nil {
		for _, since := range r.host.steps { // a step that has begun is better finished
			if left := r.stepTime() - time.Since(since); left > 0 {
				return min(left, firstPoll)
			}
		}
	}
	for _, q := range r.questions.waiting {
		switch {
		case !q.displayed:
		case q.notified: // its answer may be stored already: reading it saves parking and a takeover
			return parkRetry
		case r.needsSchedule(q): // a parked turn would not learn that the time is over
			return firstPoll
		}
	}
	return 0
}

// stepTime is how long a named step may keep the run from parking.
func (r *Run) stepTime() time.Duration {
	if d := r.t.Binding.Timeout; d > 0 {
		return d
	}
	return time.Minute
}

// parkIn sets the timer of the next attempt to park.
func (r *Run) parkIn(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parksNow() {
		d = parkRetry
	}
	if r.waits {
		r.waiting.timer.Reset(d)
	}
}

func (r *Run) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announceWaiting()
}

// announceWaiting publishes once that the turn waits for people. The mutex is held.
func (r *Run) announceWaiting() {
	if !r.waiting.announced {
		r.waiting.announced = true
		r.reg.Complete(r.t, events.RunWaits, events.ReasonAwaitingInput)
	}
}
