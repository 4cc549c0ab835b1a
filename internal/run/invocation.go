package run

import (
	"time"

	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// Invocation is how the engine runs the call of a turn. Its arguments have been checked against
// the model of the agent; the engine checks them against the schema of the tool.
func (r *Run) Invocation(call *tools.Call) engine.Invocation {
	b := r.t.Binding
	var onLimitWait func(bool)
	if b.Limits != (target.Limits{}) {
		onLimitWait = r.onLimitWait
	}
	return engine.Invocation{Call: call, Tool: Tool(b, r.t.Tool, r.t.Effect, r.t.Version), Hosts: r, OnLimitWait: onLimitWait}
}

// slotReleaseAfter is how long a run that waits for a limit keeps its slot: most runs do not wait.
const slotReleaseAfter = 20 * time.Millisecond

// limitWait is the wait of a run for a limit. It is guarded by the mutex of the run.
type limitWait struct {
	timer        *time.Timer // ends when the slot is released
	waiting      bool
	slotReleased bool
}

// onLimitWait is called by the engine when the run begins to wait for a limit, and when the wait ends.
func (r *Run) onLimitWait(begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.limited
	l.waiting = begins
	switch {
	case r.t.Message.Slot == nil:
	case begins:
		l.timer = time.AfterFunc(slotReleaseAfter, r.releaseSlot)
	default:
		l.timer.Stop()
		if l.slotReleased {
			l.slotReleased = false
			r.t.Message.Slot.Reacquire()
			r.reg.limited.Free(r.t.Key.App)
			r.cfg.Metrics.InFlight.Inc()
		}
	}
}

// releaseSlot releases the slot of a run that waits for a limit. Beyond the budget of its tenant it keeps its slot,
// so that the other turns are left to other workers.
func (r *Run) releaseSlot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.limited
	if !l.waiting || !r.reg.limited.Take(r.t.Key.App) {
		return
	}
	l.slotReleased = true
	r.t.Message.Slot.Release()
	r.cfg.Metrics.InFlight.Dec()
}
