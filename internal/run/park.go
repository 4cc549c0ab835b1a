package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
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

// parkable reports whether the run may end while its turn continues.
func (r *Run) parkable() bool {
	return r.effect != "" && r.effect != string(bindings.EffectUnsafe)
}

// beginWait releases the slot of a run that begins to wait for people, and sets the time to park. The mutex is held.
func (r *Run) beginWait() {
	w, g := &r.questions, r.reg
	if w.counted = r.parkable(); w.counted {
		n := g.parkable.Add(1)
		w.overLimit = n > g.mayWait()
	} else {
		g.warnUnsafe(r.t)
	}
	if !w.overLimit && r.t.Message.Slot != nil {
		w.slotReleased = true
		r.t.Message.Slot.Release()
		r.cfg.Metrics.InFlight.Dec()
	}
	delay := r.cfg.ParkAfter
	if r.parksNow() {
		delay = 0
	}
	w.timer = r.cfg.Timing.AfterFunc(delay, r.park)
}

// endWait gives a run its slot again that does not wait for people any more. The mutex is held.
func (r *Run) endWait() {
	w := &r.questions
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
	r.freePlace()
}

// reserve takes a place for a run that is about to ask and must not be parked: it keeps its message as long as people
// take to answer. It is called before each question, and [Run.unreserve] after it.
func (r *Run) reserve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.questions
	if !w.reserved && !r.parkable() {
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

// parksNow reports whether a run that waits parks without waiting any longer.
func (r *Run) parksNow() bool {
	return r.parkable() && (r.questions.overLimit || r.reg.draining.Load())
}

// park ends the run if it only waits, and has done so for long enough.
func (r *Run) park() {
	if !r.parkable() { // the gate may be held for as long as the server is away
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
	ids := make([]string, len(open))
	for i, q := range open {
		ids[i] = q.ID
	}
	slices.Sort(ids)
	r.hit(failpoint.BeforePark)
	hold := r.hold
	parked, err := r.cfg.Journal.Park(ctx, &hold, ids, state)
	r.setHold(hold)
	switch {
	case Unstorable(err):
		r.cannotPark(err)
	case err != nil:
		_ = r.classify(err)
	case parked:
		r.hit(failpoint.AfterPark)
		r.cfg.Metrics.Parked.Inc()
		r.cfg.Logger.With(r.t.Attrs()...).Debug("parked", "questions", len(ids), "epoch", r.hold.Epoch)
		r.announce()
		_ = r.end(tools.ErrParked)
	default: // answered meanwhile
		r.notify("")
		r.parkIn(max(r.cfg.ParkAfter, parkRetry))
	}
}

// cannotPark has a run wait in memory whose state cannot be stored.
func (r *Run) cannotPark(err error) {
	r.reg.warn(r.t, "the turn cannot be parked; it waits in memory", r.t.Attrs("err", events.LogText(err))...)
	r.parkIn(max(r.cfg.ParkAfter, firstPoll))
}

// mayPark returns the open questions if the run has to park now. Otherwise it sets the timer.
func (r *Run) mayPark() []*question {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.questions
	if r.over != nil || w.displayed == 0 {
		return nil
	}
	if quiet := r.cfg.ParkAfter - time.Since(w.touched); quiet > 0 && !r.parksNow() {
		w.timer.Reset(quiet)
		return nil
	}
	if !r.parkable() {
		r.announceWaiting()
		return nil
	}
	for _, since := range r.host.steps { // a step that has begun is better finished
		if left := r.stepTime() - time.Since(since); left > 0 {
			w.timer.Reset(min(left, firstPoll))
			return nil
		}
	}
	var open []*question
	for _, q := range w.waiting {
		if !q.displayed {
			continue
		}
		if q.notified { // its answer may be stored already: reading it saves parking and a takeover
			w.timer.Reset(parkRetry)
			return nil
		}
		if r.needsSchedule(q) { // a parked turn would not learn that the time is over
			w.timer.Reset(firstPoll)
			return nil
		}
		open = append(open, q)
	}
	return open
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
	if r.questions.displayed > 0 {
		r.questions.timer.Reset(d)
	}
}

func (r *Run) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announceWaiting()
}

// announceWaiting publishes once that the turn waits for people. The mutex is held.
func (r *Run) announceWaiting() {
	if !r.questions.announced {
		r.questions.announced = true
		r.reg.Complete(r.t, events.RunWaits, events.ReasonAwaitingInput)
	}
}
