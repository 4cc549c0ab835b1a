package handlers

import (
	"time"

	"github.com/oneturn/oneturn/bindings"
	"github.com/oneturn/oneturn/internal/engine"
	"github.com/oneturn/oneturn/internal/tools"
	"github.com/oneturn/oneturn/internal/tools/target"
)

// findTool finds what runs the tool of a turn, and what that knows of itself. Nobody is asked: what a
// tool has not learned yet does not count for this turn. An effect that only the tool can tell is not
// known then, and that of the binding is the default for a new turn.
func (h *Handlers) findTool(t *turn) (err error) {
	t.effect = t.binding.Effect
	if t.tool, err = h.Tool(t.binding); err != nil {
		return err
	}
	describer, ok := t.tool.(tools.Describer)
	if !ok {
		return nil
	}
	known, ok := describer.Known()
	t.effectUnknown = !ok && t.binding.Learns()
	if ok {
		t.version = known.Version
		if known.Effect != "" && !t.binding.EffectSaid {
			t.effect = bindings.Effect(known.Effect)
		}
	}
	return nil
}

// invocation is how the engine runs the call of a turn. Its arguments have been checked against
// the model of the agent; the engine checks them against the schema of the tool.
func (r *run) invocation(call *tools.Call) engine.Invocation {
	b := r.t.binding
	tool := engine.Tool{
		Invoker: r.t.tool, Input: b.Input, Output: b.Output, MaxAttempts: b.MaxAttempts, Timeout: b.Timeout, Limits: b.Limits, Guards: b.Guards,
	}
	var waits func(bool)
	if r.t.effect == bindings.EffectNone && b.Cache.TTL > 0 {
		tool.Cache, tool.Version, tool.ID = b.Cache, b.Digest+" "+r.t.version, toolID(b)
	}
	if b.Limits != (target.Limits{}) {
		tool.ID, waits = toolID(b), r.waitsForLimit
	}
	return engine.Invocation{Call: call, Tool: tool, Hosts: r, Waits: waits}
}

// toolID tells a tool from those of other workflows, unless all share it.
func toolID(b *bindings.Binding) string {
	if b.Shared != "" {
		return b.Shared
	}
	return b.Workflow + "/" + b.Tool
}

// patience is how long a run that waits for a limit keeps its slot: most wait for no time at all.
const patience = 20 * time.Millisecond

// limited is the wait of a run for a limit. It is guarded by the mutex of the run.
type limited struct {
	timer *time.Timer // of the end of its patience
	waits bool
	away  bool // it takes no slot
}

// waitsForLimit is told by the engine when the run begins to wait for a limit, and when it ends to.
func (r *run) waitsForLimit(begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.limited
	l.waits = begins
	switch {
	case r.t.m.Slot == nil:
	case begins:
		l.timer = time.AfterFunc(patience, r.goAway)
	default:
		l.timer.Stop()
		if l.away {
			l.away = false
			r.t.m.Slot.Reacquire()
			r.h.waits.limited.free(r.t.key.App)
			r.h.Metrics.InFlight.Inc()
		}
	}
}

// goAway leaves the slot of a run that waits for a limit to another one. Beyond the budget it keeps its
// slot, so that the rest of the turns is left to other workers.
func (r *run) goAway() {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, h := &r.limited, r.h
	if !l.waits || !h.waits.limited.take(r.t.key.App) {
		return
	}
	l.away = true
	r.t.m.Slot.Release()
	h.Metrics.InFlight.Dec()
}
