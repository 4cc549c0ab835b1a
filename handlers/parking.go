package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/events"
	"github.com/oneturn/oneturn/internal/failpoint"
	"github.com/oneturn/oneturn/internal/tools"
)

// unsafeTools is how many tools are remembered whose log has said that they cannot be parked.
const unsafeTools = 1024

// parkAgain is how long a run that was woken while it parked leaves its tool to look, when it is
// in a hurry.
const parkAgain = 20 * time.Millisecond

// Slot is what a message that is handled takes of the worker.
type Slot interface {
	// Release frees the slot while the handler only waits; Reacquire takes one again and never blocks.
	Release()
	Reacquire()
}

// parkable reports whether the run may end while its turn goes on.
func (r *run) parkable() bool {
	return r.effect != "" && r.effect != string(bindings.EffectUnsafe)
}

// begin is called when the run begins to wait for people.
func (r *run) begin() {
	w, h := &r.waiting, r.h
	if w.counted = r.parkable(); w.counted {
		n := h.waits.parkable.Add(1)
		w.crowded = n > h.mostParkable()
	} else {
		h.warnUnsafe(r.t)
	}
	if !w.crowded && r.t.m.Slot != nil {
		w.away = true
		r.t.m.Slot.Release()
		h.Metrics.InFlight.Dec()
	}
	delay := h.ParkAfter
	if r.hurries() {
		delay = 0
	}
	w.timer = h.Timing.AfterFunc(delay, r.park)
}

// warnUnsafe says once what it costs that a tool asks people and cannot be entered again.
func (h *Handlers) warnUnsafe(t *turn) {
	if h.unsafe.Add(t.binding.Workflow+"/"+t.binding.Tool, h.Now()) {
		return
	}
	h.Logger.Warn("a tool with effect unsafe asks people: its turns wait in memory and are lost with the worker (interrupted); "+
		"let its manifest say effect: replay if what it does before a question may be done again, or is in a step",
		"workflow", t.binding.Workflow, "tool", t.binding.Tool)
}

// rest is called when the run waits for nobody any more.
func (r *run) rest() {
	w := &r.waiting
	w.timer.Stop()
	if w.away {
		w.away = false
		r.t.m.Slot.Reacquire()
		r.h.Metrics.InFlight.Inc()
	}
	if w.counted {
		w.counted = false
		r.h.waits.parkable.Add(-1)
	}
	r.vacate()
}

// reserve takes a place for a run that is about to ask and must not be parked: it keeps its message for
// as long as people take. It is called before each question, and [run.unreserve] after it.
func (r *run) reserve() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.waiting
	if !w.reserved && !r.parkable() {
		if !r.h.waits.asking.take(r.t.key.App) {
			r.h.often(r.t.m, slog.LevelWarn, "a question is refused: the worker keeps as many turns of the tenant in memory as it may", "",
				"app", cut(r.t.App), "chat", cut(r.t.Chat), "turn", cut(r.t.callID))
			return &events.Error{
				Code: events.CodeToolError, Op: "ask", Err: tools.ErrTooManyWaiting, Msg: fmt.Sprintf(
					"the question was not asked: too many turns of tenant %.80q wait for people in the memory of this worker, as those of tools with effect unsafe do; "+
						"let its manifest say effect: replay, or send the turn again later", r.t.App),
			}
		}
		w.reserved = true
	}
	w.asking++
	return nil
}

func (r *run) unreserve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.asking--
	r.vacate()
}

// vacate gives the place of a run back that neither asks nor waits for people any more.
func (r *run) vacate() {
	if w := &r.waiting; w.reserved && w.asking == 0 && w.count == 0 {
		w.reserved = false
		r.h.waits.asking.free(r.t.key.App)
	}
}

// hurries reports whether a run that waits parks at once.
func (r *run) hurries() bool { return r.parkable() && (r.waiting.crowded || r.h.draining.Load()) }

// Drain has all runs that wait for people park at once, and those that begin to wait from now on:
// the worker is about to stop.
func (h *Handlers) Drain() {
	h.draining.Store(true)
	for _, r := range h.running.all() {
		r.mu.Lock()
		if r.waiting.count > 0 {
			r.waiting.timer.Reset(0)
		}
		r.mu.Unlock()
	}
}

// park ends the run if it only waits, and has done so for long enough: whoever answers has the
// tool run again, here or elsewhere.
func (r *run) park() {
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
	ctx := r.t.m.Held
	state, err := r.state(ctx)
	if err != nil {
		r.h.often(r.t.m, slog.LevelWarn, "the turn cannot be parked; it waits in memory", "", r.t.with("err", logError(err))...)
		r.parkIn(max(r.h.ParkAfter, firstLook))
		return
	}
	ids := make([]string, len(open))
	for i, q := range open {
		ids[i] = q.ID
	}
	slices.Sort(ids)
	r.hit(failpoint.BeforePark)
	hold := r.hold
	parked, err := r.h.Journal.Park(ctx, &hold, ids, state)
	r.holds(hold)
	switch {
	case errorsRefused(err):
		r.h.often(r.t.m, slog.LevelWarn, "the turn cannot be parked; it waits in memory", "", r.t.with("err", logError(err))...)
		r.parkIn(max(r.h.ParkAfter, firstLook))
	case err != nil:
		_ = r.judge(err)
	case parked:
		r.hit(failpoint.AfterPark)
		r.h.Metrics.Parked.Inc()
		r.h.log(r.t).Debug("parked", "questions", len(ids), "epoch", r.hold.Epoch)
		r.tell()
		_ = r.end(tools.ErrParked)
	default:
		r.wake("")
		r.parkIn(max(r.h.ParkAfter, parkAgain))
	}
}

// mayPark returns the open questions if it is time to park. If it is not yet, it sets the timer.
func (r *run) mayPark() []*question {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.waiting
	if r.over != nil || w.count == 0 {
		return nil
	}
	if quiet := r.h.ParkAfter - time.Since(w.touched); quiet > 0 && !r.hurries() {
		w.timer.Reset(quiet)
		return nil
	}
	if !r.parkable() {
		r.tellWaiting()
		return nil
	}
	for _, since := range r.desk.steps { // what is being done is better finished
		if left := r.stepTime() - time.Since(since); left > 0 {
			w.timer.Reset(min(left, firstLook))
			return nil
		}
	}
	var open []*question
	for _, q := range w.open {
		if !q.open {
			continue
		}
		if q.called { // what woke it may be stored already: a look saves parking and being taken over
			w.timer.Reset(parkAgain)
			return nil
		}
		if r.unscheduled(q) { // nobody would tell a parked turn that the time is over
			w.timer.Reset(firstLook)
			return nil
		}
		open = append(open, q)
	}
	return open
}

// stepTime is how long a named step may keep the run from parking.
func (r *run) stepTime() time.Duration {
	if d := r.t.binding.Timeout; d > 0 {
		return d
	}
	return time.Minute
}

func (r *run) parkIn(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hurries() {
		d = parkAgain
	}
	if r.waiting.count > 0 {
		r.waiting.timer.Reset(d)
	}
}

func (r *run) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tellWaiting()
}

// tellWaiting tells frontends once that the turn waits for people.
func (r *run) tellWaiting() {
	if !r.waiting.told {
		r.waiting.told = true
		r.h.runComplete(r.t, events.RunWaits, events.ReasonAwaitingInput)
	}
}

// parkState is all that another run needs besides the journal's records.
type parkState struct {
	// Context are the context variables as the tool got them or, if it has not read them, the
	// snapshot of the event: an object, or an [events.Blob]. Nil if there is neither.
	Context json.RawMessage `json:"context,omitempty"`
	Read    bool            `json:"read,omitempty"` // the tool has read them
	// Base has the digests of what the snapshot held, see [Delta.Base], if Context is not it.
	Base       map[string]string `json:"base,omitempty"`
	Enterprise bool              `json:"enterprise,omitempty"` // of the event
}

func (r *run) state(ctx context.Context) (json.RawMessage, error) {
	s := parkState{Enterprise: r.t.Enterprise}
	r.mu.Lock()
	vars := r.vars
	r.mu.Unlock()
	switch {
	case vars != nil:
		s.Read, s.Base = true, r.t.digests()
	case r.t.ContextVariables != nil:
		vars = r.t.ContextVariables
	case s.Enterprise:
		return jsonOf(s), nil
	default:
		return nil, nil
	}
	data, err := events.AppendJSON(nil, vars)
	if err != nil {
		return nil, err
	}
	kept, err := r.h.shrink(ctx, r.tools, r.t.key, events.RecordPark, json.RawMessage(data), data)
	if err != nil {
		return nil, err
	}
	var inline bool
	if s.Context, inline = kept.(json.RawMessage); !inline {
		s.Context = jsonOf(kept)
	}
	return jsonOf(s), nil
}

// digests are those of the whole snapshot of the event, nil without one.
func (t *turn) digests() map[string]string {
	if t.base != nil || t.ContextVariables == nil {
		return t.base
	}
	base := make(map[string]string, len(t.ContextVariables))
	for name, value := range t.ContextVariables {
		base[name] = digestOf(value)
	}
	return base
}

// unpark gives a turn what its state says.
func (h *Handlers) unpark(ctx context.Context, t *turn, state json.RawMessage) error {
	var s parkState
	if len(state) == 0 {
		return nil
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return errors.Join(errNoArgs, err)
	}
	t.Enterprise = t.Enterprise || s.Enterprise
	if len(s.Context) == 0 {
		return nil
	}
	tree, err := events.Decode(s.Context)
	if err != nil {
		return errors.Join(errNoArgs, err)
	}
	vars, err := h.Blobs.Object(ctx, t.key, events.RecordPark, tree)
	if s.Read {
		t.vars, t.base = vars, s.Base
		return err
	}
	t.ContextVariables = vars
	return err
}
